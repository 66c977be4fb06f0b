# Slots are lowered while two hosts are under way; the third waits until one is free.
> host h1
> host h2
> host h3
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian rollout/max-concurrent=3
  + config-replaced actor=admin config=(rollout=(max-concurrent=3) worker-applications=[(name=debian)]) difference=[(after=(max-concurrent=3) path=rollout)]
  = done
> settings embedded default:2
  + settings-adopted settings=(auto-approve=true groups=(default=2))
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=3) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
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
  + r1 h3: waiting reason=(slot-denied denial=(full held=2 holders=[(id=h1 since=2026-11-21T01:00:00Z) (id=h2 since=2026-11-21T01:00:00Z)] provider=embedded slots=2) group=default)
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z, send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  + r1 h2: command-sent action=upgrade attempt=1 sequence=9
  ! nothing
> settings embedded other:1
  + settings-adopted settings=(auto-approve=true groups=(other=1))
> explain h3
  denied a slot of group default: the group has no slots any more; still held by h1 since 2026-11-21T01:00:00Z, h2 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full) | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z | in-run=slot-denied
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
> settings embedded default:1
  + settings-adopted settings=(auto-approve=true)
> explain h3
  denied a slot of group default: the only slot is held by h2 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full) | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z | in-run=slot-denied
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + r1 h3: slot-granted group=default provider=embedded
  ! send r1/h3/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h3: command-sent action=upgrade attempt=1 sequence=12
  ! nothing
> reply h3 upgrade done
  + r1 h3: upgraded
  + slot-released host=h3 why=upgraded
  + run-ended counts=(upgraded=3) result=completed run=r1
> state
  r1 completed
  h1 upgraded
  h2 upgraded
  h3 upgraded
