# A host that failed is one to retry until it has succeeded: a run in which its turn did not come, or which was cancelled, changes nothing.
> settings default:4
  + settings-adopted settings=(auto-approve=true groups=(default=4))
> host h1
> host h2
> put-config debian rollout/max-failures=2
  + config-replaced actor=admin config=(rollout=(max-failures=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-failures=2) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T02:00:00Z rollout=(max-failures=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare error no-space
  + r1 h1: failed reason=(worker-error action=prepare message="error no-space")
> reply h2 prepare error no-space
  + r1 h2: failed reason=(worker-error action=prepare message="error no-space")
  + run-ended counts=(failed=2) result=failed run=r1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(before=(max-failures=2) path=rollout)]
  = done
> trigger r2 retry=failed
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r2 trigger=(operator actor=admin targeted=true)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=6
  + r2 h2: command-sent action=prepare attempt=1 sequence=7
  ! nothing
> reply h1 prepare error no-space
  + r2 h1: failed reason=(worker-error action=prepare message="error no-space")
  + run-stopping cause=(failed host=h1) run=r2
  + r2 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r2
  ~ hint h2: r2 failed
  ! retract 7 of h2
> trigger r3 retry=failed
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r3 trigger=(operator actor=admin targeted=true)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T05:00:00Z, send r3/h2/prepare/1 until 2026-11-21T05:00:00Z, retract 7 of h2
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r3
  + r3 h1: cancelled reason=(run-cancelled actor=admin)
  + r3 h2: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=2) result=cancelled run=r3
  = done
  ! retract 7 of h2
> trigger r4 retry=failed
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r4 trigger=(operator actor=admin targeted=true)
  = done
  ! send r4/h1/prepare/1 until 2026-11-21T05:00:00Z, send r4/h2/prepare/1 until 2026-11-21T05:00:00Z, retract 7 of h2
> deliver
  + r4 h1: command-sent action=prepare attempt=1 sequence=9
  + r4 h2: command-sent action=prepare attempt=1 sequence=10
  ! retract 7 of h2
> reply h1 prepare done
  + r4 h1: prepared
> reply h2 prepare done
  + r4 h2: prepared
  + upgrades-began run=r4
  + r4 h1: slot-granted group=default provider=embedded
  ! send r4/h1/upgrade/1 until 2026-11-21T05:00:00Z, retract 7 of h2
> deliver
  + r4 h1: command-sent action=upgrade attempt=1 sequence=13
  ! retract 7 of h2
> reply h1 upgrade done
  + r4 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r4 h2: slot-granted group=default provider=embedded
  ! send r4/h2/upgrade/1 until 2026-11-21T05:00:00Z, retract 7 of h2
> deliver
  + r4 h2: command-sent action=upgrade attempt=1 sequence=15
  ! retract 7 of h2
> reply h2 upgrade done
  + r4 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r4
> trigger r5 retry=failed
  = refused: no host that can take part has failed or timed out since it was upgraded last: `os-upgrade hosts list` shows how each ended
