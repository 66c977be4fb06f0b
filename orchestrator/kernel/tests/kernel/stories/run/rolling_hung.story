# With `max-preparing`, a host that does not answer `prepare` has had its turn: the next run begins with the others.
> host h1
> host h2
> put-config debian rollout/max-preparing=1
  + config-replaced actor=admin config=(rollout=(max-preparing=1) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-preparing=1) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T01:10:00Z rollout=(max-preparing=1) run=r1 trigger=(operator actor=admin)
  + upgrades-began run=r1
  + r1 h1: prepare-began
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T01:10:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> wait 600
> tick
  + r1 h1: timed-out reason=(no-reply action=prepare)
  + r1 h2: not-reached reason=(run-timed-out waited-for=(hosts-preparing hosts=1))
  + run-ended counts=(not-reached=1 timed-out=1) result=timed-out run=r1
  ! retract 2 of h1
> trigger r2 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T01:20:00Z rollout=(max-preparing=1) run=r2 trigger=(operator actor=admin)
  + upgrades-began run=r2
  + r2 h2: prepare-began
  = done
  ! send r2/h2/prepare/1 until 2026-11-21T01:20:00Z, retract 2 of h1
> deliver
  + r2 h2: command-sent action=prepare attempt=1 sequence=3
  ! retract 2 of h1
> reply h2 prepare done
  + r2 h2: prepared
  + r2 h2: slot-granted group=default provider=embedded
  + r2 h1: prepare-began
  ! send r2/h1/prepare/1 until 2026-11-21T01:20:00Z, send r2/h2/upgrade/1 until 2026-11-21T01:20:00Z, retract 2 of h1
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=5
  + r2 h2: command-sent action=upgrade attempt=1 sequence=6
  ! retract 2 of h1
> reply h2 upgrade done
  + r2 h2: upgraded
  + slot-released host=h2 why=upgraded
> reply h1 prepare error no-space
  + r2 h1: failed reason=(worker-error action=prepare message="error no-space")
  + run-stopping cause=(failed host=h1) run=r2
  + run-ended counts=(failed=1 upgraded=1) result=failed run=r2
# Without `max-preparing` it kept no other from being prepared, and has had no turn: h1 goes first in r4.
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(before=(max-preparing=1) path=rollout)]
  = done
> trigger r3 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T01:20:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T01:20:00Z, send r3/h2/prepare/1 until 2026-11-21T01:20:00Z, retract 2 of h1
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=9
  + r3 h2: command-sent action=prepare attempt=1 sequence=10
  ! retract 2 of h1
> reply h2 prepare done
  + r3 h2: prepared
> wait 600
> tick
  + r3 h1: timed-out reason=(no-reply action=prepare)
  + r3 h2: not-reached reason=(run-timed-out waited-for=(hosts-unprepared host=h1))
  + run-ended counts=(not-reached=1 timed-out=1) result=timed-out run=r3
  ! retract 2 of h1, retract 9 of h1
> put-config debian rollout/max-preparing=1
  + config-replaced actor=admin config=(rollout=(max-preparing=1) worker-applications=[(name=debian)]) difference=[(after=(max-preparing=1) path=rollout)]
  = done
> trigger r4 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T01:30:00Z rollout=(max-preparing=1) run=r4 trigger=(operator actor=admin)
  + upgrades-began run=r4
  + r4 h1: prepare-began
  = done
  ! send r4/h1/prepare/1 until 2026-11-21T01:30:00Z, retract 2 of h1, retract 9 of h1
