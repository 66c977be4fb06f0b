# The reason of a host in an earlier run does not count in the next run, where it is under way.
> host h1
> host h2
> put-config debian rollout/max-concurrent=2 rollout/max-failures=1
  + config-replaced actor=admin config=(rollout=(max-concurrent=2 max-failures=1) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2 max-failures=1) worker-applications=[(name=debian)]) path=)]
  = created
> settings embedded default:1
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2 max-failures=1) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  + r1 h2: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h1 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> reply h1 upgrade disk full
  + r1 h1: failed reason=(worker-error action=upgrade message="disk full")
> explain h2
  denied a slot of group default: the only slot is held by h1 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full); h1: upgrade failed: disk full | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z,slot-stuck | in-run=slot-denied
> release default h1 looked at
  + slot-released host=h1 why=operator
  + holder-released actor=admin group=default id=h1 reason="looked at"
  + r1 h2: slot-granted group=default provider=embedded
  = done
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(failed=1 upgraded=1) result=completed run=r1
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2 max-failures=1) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=10
  + r2 h2: command-sent action=prepare attempt=1 sequence=11
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
  + r2 h1: slot-granted group=default provider=embedded
  + r2 h2: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h1 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
  ! send r2/h1/upgrade/1 until 2026-11-21T05:00:00Z
> explain h2
  denied a slot of group default: the only slot is held by h1 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full) | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z | in-run=slot-denied
