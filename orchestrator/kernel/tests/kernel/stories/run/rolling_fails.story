# With `max-preparing`, a host whose worker answers `prepare` with an error has had its turn too: the next run begins with the others.
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
> reply h1 prepare error no-space
  + r1 h1: failed reason=(worker-error action=prepare message="error no-space")
  + run-stopping cause=(failed host=h1) run=r1
  + r1 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r1
> trigger r2 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T01:10:00Z rollout=(max-preparing=1) run=r2 trigger=(operator actor=admin)
  + upgrades-began run=r2
  + r2 h2: prepare-began
  = done
  ! send r2/h2/prepare/1 until 2026-11-21T01:10:00Z
> deliver
  + r2 h2: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h2 prepare done
  + r2 h2: prepared
  + r2 h2: slot-granted group=default provider=embedded
  + r2 h1: prepare-began
  ! send r2/h1/prepare/1 until 2026-11-21T01:10:00Z, send r2/h2/upgrade/1 until 2026-11-21T01:10:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=6
  + r2 h2: command-sent action=upgrade attempt=1 sequence=7
  ! nothing
> reply h2 upgrade done
  + r2 h2: upgraded
  + slot-released host=h2 why=upgraded
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h1: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=1 upgraded=1) result=cancelled run=r2
  = done
  ~ hint h1: r2 cancelled
  ! retract 6 of h1
# So has one that has not answered when less is left than a host takes: it has timed out, as at the end of a run.
> put-config debian rollout/max-preparing=1 rollout/expected-duration=5m
  + config-replaced actor=admin config=(rollout=(expected-duration=5m max-preparing=1) worker-applications=[(name=debian)]) difference=[(after=5m path=rollout/expected-duration)]
  = done
> trigger r3 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T01:10:00Z rollout=(expected-duration=5m max-preparing=1) run=r3 trigger=(operator actor=admin)
  + upgrades-began run=r3
  + r3 h1: prepare-began
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T01:10:00Z, retract 6 of h1
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=9
  ! retract 6 of h1
> wait 301
> tick
  + r3 h1: timed-out reason=(no-reply action=prepare)
  + r3 h2: not-reached reason=(no-time-left expected=5m waited-for=(hosts-preparing hosts=1))
  + run-ended counts=(not-reached=1 timed-out=1) result=timed-out run=r3
  ! retract 6 of h1, retract 9 of h1
> trigger r4 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T01:15:01Z rollout=(expected-duration=5m max-preparing=1) run=r4 trigger=(operator actor=admin)
  + upgrades-began run=r4
  + r4 h2: prepare-began
  = done
  ! send r4/h2/prepare/1 until 2026-11-21T01:15:01Z, retract 6 of h1, retract 9 of h1
> state
  r4 active
  h1 pending
  h2 pending
