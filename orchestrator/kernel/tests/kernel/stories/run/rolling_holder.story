# A host that holds a slot from an earlier run is prepared whoever else is, as others wait for that slot. It does not count: it may hang.
> host h1
> host h2
> host h3
> put-config debian rollout/max-failures=1
  + config-replaced actor=admin config=(rollout=(max-failures=1) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-failures=1) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:00:00Z rollout=(max-failures=1) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z, send r1/h3/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h1 prepare error no-space
  + r1 h1: failed reason=(worker-error action=prepare message="error no-space")
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
  + upgrades-began run=r1
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h2 upgrade error it-broke
  + r1 h2: failed reason=(worker-error action=upgrade message="error it-broke")
  + run-stopping cause=(failed host=h2) run=r1
  + r1 h3: not-reached reason=(run-failed host=h2)
  + run-ended counts=(failed=2 not-reached=1) result=failed run=r1
> state
  r1 failed
  h1 failed: prepare failed: error no-space
  h2 failed: upgrade failed: error it-broke
  h3 not-reached: the run was ended by the failure of h2
  slot h2: begun=true command=(action=upgrade sequence=8) failed=true group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> put-config debian rollout/max-preparing=1
  + config-replaced actor=admin config=(rollout=(max-preparing=1) worker-applications=[(name=debian)]) difference=[(after=0 before=1 path=rollout/max-failures) (after=1 path=rollout/max-preparing)]
  = done
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:00:00Z rollout=(max-preparing=1) run=r2 trigger=(operator actor=admin)
  + upgrades-began run=r2
  + r2 h2: prepare-began
  + r2 h1: prepare-began
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T02:00:00Z, send r2/h2/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=10
  + r2 h2: command-sent action=prepare attempt=1 sequence=11
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
  + r2 h1: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h2 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
> reply h2 prepare done
  + r2 h2: prepared
  + r2 h2: slot-granted group=default provider=embedded
  ! send r2/h2/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r2 h2: command-sent action=upgrade attempt=1 sequence=14
  ! nothing
> reply h2 upgrade done
  + r2 h2: upgraded
  + slot-released host=h2 why=upgraded
  + r2 h1: slot-granted group=default provider=embedded
  + r2 h3: prepare-began
  ! send r2/h1/upgrade/1 until 2026-11-21T02:00:00Z, send r2/h3/prepare/1 until 2026-11-21T02:00:00Z
> state
  r2 active
  h1 upgrading
  h2 upgraded
  h3 pending
  slot h1: begun=false command=null group=default provider=embedded run=r2 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
