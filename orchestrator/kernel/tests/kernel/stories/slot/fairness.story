# Hosts of runs and external clients share slots in the order of arrival.
> host h1
> host h2
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> lock default z1
  + lock-granted actor=admin group=default id=z1
  = done
> wait 10
> lock default z2
  + lock-awaited actor=admin group=default id=z2
  = refused: the only slot is held by z1 since 2026-11-21T01:00:00Z
# Again, a moment later: that it waits is already recorded.
> wait 10
> lock default z2
  = refused: the only slot is held by z1 since 2026-11-21T01:00:00Z
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:20Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:20Z, send r1/h2/prepare/1 until 2026-11-21T05:00:20Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h1: waiting reason=(slot-denied denial=(full held=1 holders=[(id=z1 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
> wait 10
> lock default z3
  + lock-awaited actor=admin group=default id=z3
  = refused: the only slot is held by z1 since 2026-11-21T01:00:00Z
# The first slot is left to the client that came before the host, for as long as it may ask again.
> unlock default z1
  + lock-released actor=admin group=default id=z1
  = done
> explain h1
  denied a slot of group default: free slots are left to earlier clients: z2 has waited since 2026-11-21T01:00:10Z (failed_lock_semaphore_full) | status=waiting | since=2026-11-21T01:00:20Z | why=slot-denied@2026-11-21T05:00:20Z | in-run=slot-denied
> wait 300
> tick
# The first client to ask gets it, and uses up the earliest arrival: the next slot is the host's.
> lock default z3
  + lock-granted actor=admin group=default id=z3
  = done
> unlock default z3
  + lock-released actor=admin group=default id=z3
  + r1 h1: slot-granted group=default provider=embedded
  = done
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:20Z
> lock default z2
  + lock-awaited actor=admin group=default id=z2
  = refused: the only slot is held by h1 since 2026-11-21T01:05:30Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h2: waiting reason=(slot-denied denial=(left-to-earlier id=z2 provider=embedded since=2026-11-21T01:00:10Z) group=default)
# The client still waits, and arrived before the second host; but it does not retry.
> explain h2
  denied a slot of group default: free slots are left to earlier clients: z2 has waited since 2026-11-21T01:00:10Z (failed_lock_semaphore_full) | status=waiting | since=2026-11-21T01:05:30Z | why=slot-denied@2026-11-21T05:00:20Z | in-run=slot-denied
> wait 200
> tick
> wait 220
> tick
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:20Z
# A client that no longer wants a slot is not waited for.
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> lock default z4
  + lock-awaited actor=admin group=default id=z4
  = refused: the only slot is held by h2 since 2026-11-21T01:12:30Z
> unlock default z4
  + lock-wait-ended actor=admin group=default id=z4
  = done
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r1
> lock default z5
  + lock-granted actor=admin group=default id=z5
  = done
