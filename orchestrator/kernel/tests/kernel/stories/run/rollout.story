# Two at once, one failure allowed, one host unreachable. A configuration changed during a run counts for the next one.
> host h1
> host h2
> host h3
> host h4 unreachable
> host h5 applications=other
> put-config debian rollout/max-concurrent=2 rollout/max-failures=1
  + config-replaced actor=admin config=(rollout=(max-concurrent=2 max-failures=1) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2 max-failures=1) worker-applications=[(name=debian)]) path=)]
  = created
> settings embedded default:2
  + settings-adopted settings=(auto-approve=true groups=(default=2))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4 skipped=unreachable)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2 max-failures=1) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> explain h4
  unreachable: no heartbeat when the run started | status=skipped | since=2026-11-21T01:00:00Z | why=unreachable | in-run=unreachable
> explain h5
  its worker's application is not among the configured ones | why=not-served
> explain h6
  no worker has announced itself on it | why=not-announced
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(before=(max-concurrent=2 max-failures=1) path=rollout)]
  = done
> host h6
> explain h6
  it appeared after the run had started | why=appeared-late@2026-11-21T05:00:00Z
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
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z, send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  + r1 h2: command-sent action=upgrade attempt=1 sequence=9
  ! nothing
> reply h1 upgrade smoke
  + r1 h1: failed reason=(worker-error action=upgrade message=smoke)
  + r1 h3: waiting reason=(slot-denied denial=(full held=2 holders=[(id=h1 since=2026-11-21T01:00:00Z) (id=h2 since=2026-11-21T01:00:00Z)] provider=embedded slots=2) group=default)
> explain h3
  denied a slot of group default: all 2 slots are held by h1 since 2026-11-21T01:00:00Z, h2 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full); h1: upgrade failed: smoke | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z,slot-stuck | in-run=slot-denied
> deliver
# Slots become fewer while they are held: no host is stopped, and no other starts.
> settings embedded default:1
  + settings-adopted settings=(auto-approve=true)
> settings embedded default:3
  + settings-adopted settings=(auto-approve=true groups=(default=3))
  + r1 h3: slot-granted group=default provider=embedded
  ! send r1/h3/upgrade/1 until 2026-11-21T05:00:00Z
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
> deliver
  + r1 h3: command-sent action=upgrade attempt=1 sequence=12
  ! nothing
> reply h3 upgrade done
  + r1 h3: upgraded
  + slot-released host=h3 why=upgraded
  + run-ended counts=(failed=1 skipped=1 upgraded=2) result=completed run=r1
> state
  r1 completed
  h1 failed: upgrade failed: smoke
  h2 upgraded
  h3 upgraded
  h4 skipped: unreachable: no heartbeat when the run started
  slot h1: begun=true command=(action=upgrade sequence=8) failed=true group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
# An unreachable host fails the run when the configuration says so.
> put-config debian rollout/unreachable=fail
  + config-replaced actor=admin config=(rollout=(unreachable=fail) worker-applications=[(name=debian)]) difference=[(after=(unreachable=fail) path=rollout)]
  = done
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4 skipped=unreachable) (application=debian group=default host=h6)] not-after=2026-11-21T05:00:00Z rollout=(unreachable=fail) run=r2 trigger=(operator actor=admin)
  + run-stopping cause=(failed host=h4) run=r2
  + r2 h1: not-reached reason=(run-failed host=h4)
  + r2 h2: not-reached reason=(run-failed host=h4)
  + r2 h3: not-reached reason=(run-failed host=h4)
  + r2 h6: not-reached reason=(run-failed host=h4)
  + run-ended counts=(not-reached=4 skipped=1) result=failed run=r2
  = done
> state
  r2 failed
  h1 not-reached: the run was ended by the failure of h4
  h2 not-reached: the run was ended by the failure of h4
  h3 not-reached: the run was ended by the failure of h4
  h4 skipped: unreachable: no heartbeat when the run started
  h6 not-reached: the run was ended by the failure of h4
  slot h1: begun=true command=(action=upgrade sequence=8) failed=true group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
# No host is left.
> host h1 unreachable
> host h2 unreachable
> host h3 unreachable
> host h6 unreachable
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(before=(unreachable=fail) path=rollout)]
  = done
> trigger r3
  + run-started hosts=[(application=debian group=default host=h1 skipped=unreachable) (application=debian group=default host=h2 skipped=unreachable) (application=debian group=default host=h3 skipped=unreachable) (application=debian group=default host=h4 skipped=unreachable) (application=debian group=default host=h6 skipped=unreachable)] not-after=2026-11-21T05:00:00Z rollout=() run=r3 trigger=(operator actor=admin)
  + run-ended counts=(skipped=5) result=failed run=r3
  = done
> state
  r3 failed
  h1 skipped: unreachable: no heartbeat when the run started
  h2 skipped: unreachable: no heartbeat when the run started
  h3 skipped: unreachable: no heartbeat when the run started
  h4 skipped: unreachable: no heartbeat when the run started
  h6 skipped: unreachable: no heartbeat when the run started
  slot h1: begun=true command=(action=upgrade sequence=8) failed=true group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
