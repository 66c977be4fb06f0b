# A client that was refused once and is switched off does not keep a free slot from a run that ends before it may come back.
> host h1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> lock default z1
  + lock-granted actor=admin group=default id=z1
  = done
> lock default z2
  + lock-awaited actor=admin group=default id=z2
  = refused: the only slot is held by z1 since 2026-11-21T01:00:00Z
> unlock default z1
  + lock-released actor=admin group=default id=z1
  = done
> trigger r1 timeout=5m
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T01:05:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T01:05:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T01:05:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=4
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(upgraded=1) result=completed run=r1
# A longer run leaves it the slot until it is not expected any more.
> lock default z1
  + lock-granted actor=admin group=default id=z1
  = done
> lock default z3
  + lock-awaited actor=admin group=default id=z3
  = refused: the only slot is held by z1 since 2026-11-21T01:00:00Z
> unlock default z1
  + lock-released actor=admin group=default id=z1
  = done
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T02:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=6
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
  + upgrades-began run=r2
  + r2 h1: waiting reason=(slot-denied denial=(left-to-earlier id=z2 provider=embedded since=2026-11-21T01:00:00Z) group=default)
> wait 6m
> tick
> wait 1
> tick
  + r2 h1: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h1 upgrade done
  + r2 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(upgraded=1) result=completed run=r2
# One that asks each minute is expected for less than two.
> lock default z1
  + lock-granted actor=admin group=default id=z1
  = done
> lock default z4
  + lock-awaited actor=admin group=default id=z4
  = refused: the only slot is held by z1 since 2026-11-21T01:06:01Z
> wait 1m
> lock default z4
  + lock-awaited actor=admin group=default id=z4
  = refused: the only slot is held by z1 since 2026-11-21T01:06:01Z
> unlock default z1
  + lock-released actor=admin group=default id=z1
  = done
> trigger r3 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T02:07:01Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T02:07:01Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=10
  ! nothing
> reply h1 prepare done
  + r3 h1: prepared
  + upgrades-began run=r3
  + r3 h1: waiting reason=(slot-denied denial=(left-to-earlier id=z4 provider=embedded since=2026-11-21T01:06:01Z) group=default)
> wait 105
> tick
> wait 1
> tick
  + r3 h1: slot-granted group=default provider=embedded
  ! send r3/h1/upgrade/1 until 2026-11-21T02:07:01Z
