# Whoever had no turn in a run says what kept it from one: here a host that failed in the run before, and keeps the only slot.
> host h1
> host h2
> host h3
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z, send r1/h3/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h1 upgrade no space
  + r1 h1: failed reason=(worker-error action=upgrade message="no space")
  + run-stopping cause=(failed host=h1) run=r1
  + r1 h2: not-reached reason=(run-failed host=h1)
  + r1 h3: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=2) result=failed run=r1
> withdraw h1 why=broken
  + host-withdrawn actor=admin host=h1 reason=broken
  = done
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1 skipped=(host-withdrawn actor=admin reason=broken)) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h2/prepare/1 until 2026-11-21T02:00:00Z, send r2/h3/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r2 h2: command-sent action=prepare attempt=1 sequence=10
  + r2 h3: command-sent action=prepare attempt=1 sequence=11
  ! nothing
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
  + upgrades-began run=r2
  + r2 h2: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h1 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
> wait 3600
> tick
  + r2 h2: not-reached reason=(run-timed-out waited-for=(slot-denied denial=(full held=1 holders=[(id=h1 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default))
  + r2 h3: not-reached reason=(run-timed-out waited-for=(slot-denied denial=(full held=1 holders=[(id=h1 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default))
  + run-ended counts=(not-reached=2 skipped=1) result=timed-out run=r2
> state
  r2 timed-out
  h1 skipped: withdrawn by admin: broken
  h2 not-reached: the run timed out before its turn: denied a slot of group default: the only slot is held by h1 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full)
  h3 not-reached: the run timed out before its turn: denied a slot of group default: the only slot is held by h1 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full)
  slot h1: begun=true command=(action=upgrade sequence=8) failed=true group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
