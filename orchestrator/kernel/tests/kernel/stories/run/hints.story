# When a run stops, hosts at work get a hint, and no others. A hint retracts nothing: replies count as before.
> host h1
> host h2
> host h3
> put-config debian rollout/max-concurrent=2
  + config-replaced actor=admin config=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> settings embedded default:2
  + settings-adopted settings=(auto-approve=true groups=(default=2))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
# The host whose prepare failed has answered, and so has h2; h3 has not.
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h2 prepare done
  + r1 h2: prepared
> reply h1 prepare no space left
  + r1 h1: failed reason=(worker-error action=prepare message="no space left")
  + run-stopping cause=(failed host=h1) run=r1
  + r1 h2: not-reached reason=(run-failed host=h1)
  + r1 h3: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=2) result=failed run=r1
  ~ hint h3: r1 failed
  ! retract 4 of h3
# Two hosts are upgraded at once, and one of them fails: the other gets a hint, and finishes.
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z, send r2/h3/prepare/1 until 2026-11-21T05:00:00Z, retract 4 of h3
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=7
  + r2 h2: command-sent action=prepare attempt=1 sequence=8
  + r2 h3: command-sent action=prepare attempt=1 sequence=9
  ! retract 4 of h3
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
  + upgrades-began run=r2
  + r2 h1: slot-granted group=default provider=embedded
  + r2 h2: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T05:00:00Z, send r2/h2/upgrade/1 until 2026-11-21T05:00:00Z, retract 4 of h3
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=13
  + r2 h2: command-sent action=upgrade attempt=1 sequence=14
  ! retract 4 of h3
> reply h1 upgrade dpkg was interrupted
  + r2 h1: failed reason=(worker-error action=upgrade message="dpkg was interrupted")
  + run-stopping cause=(failed host=h1) run=r2
  + r2 h3: not-reached reason=(run-failed host=h1)
  ~ hint h2: r2 failed
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  = done
  ~ hint h2: r2 failed
> reply h2 upgrade done
  + r2 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(failed=1 not-reached=1 upgraded=1) result=failed run=r2
# No host is at work, because all have finished, or because no command has been sent yet.
> trigger r3
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T05:00:00Z, send r3/h2/prepare/1 until 2026-11-21T05:00:00Z, send r3/h3/prepare/1 until 2026-11-21T05:00:00Z, retract 4 of h3
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r3
  + r3 h1: cancelled reason=(run-cancelled actor=admin)
  + r3 h2: cancelled reason=(run-cancelled actor=admin)
  + r3 h3: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=3) result=cancelled run=r3
  = done
  ! retract 4 of h3
