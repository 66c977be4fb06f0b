# One of three hosts cannot prepare: nothing is upgraded, and no slot is touched.
> host h1
> host h2
> host h3
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare no space left on device
  + r1 h2: failed reason=(worker-error action=prepare message="no space left on device")
  + run-stopping cause=(failed host=h2) run=r1
  + r1 h1: not-reached reason=(run-failed host=h2)
  + r1 h3: not-reached reason=(run-failed host=h2)
  + run-ended counts=(failed=1 not-reached=2) result=failed run=r1
  ~ hint h3: r1 failed
  ! retract 4 of h3
> reply h3 prepare done
  + ignored host=h3 reply=(action=prepare result=done) sequence=7 why=nothing-outstanding
> state
  r1 failed
  h1 not-reached: the run was ended by the failure of h2
  h2 failed: prepare failed: no space left on device
  h3 not-reached: the run was ended by the failure of h2
> retracted h3 at=4 deleted
  + command-retracted deleted=true host=h3 sequence=4
  ! nothing
# The reply `reboot-required` to prepare is no success either.
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z, send r2/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=8
  + r2 h2: command-sent action=prepare attempt=1 sequence=9
  + r2 h3: command-sent action=prepare attempt=1 sequence=10
  ! nothing
> reply h1 prepare reboot-required
  + r2 h1: failed reason=(worker-error action=prepare message=reboot-required)
  + run-stopping cause=(failed host=h1) run=r2
  + r2 h2: not-reached reason=(run-failed host=h1)
  + r2 h3: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=2) result=failed run=r2
  ~ hint h2 h3: r2 failed
  ! retract 9 of h2, retract 10 of h3
> state
  r2 failed
  h1 failed: prepare failed: reboot-required
  h2 not-reached: the run was ended by the failure of h1
  h3 not-reached: the run was ended by the failure of h1
# An error after `done` and before the next command counts.
> retracted h2 at=9 deleted
  + command-retracted deleted=true host=h2 sequence=9
  ! retract 10 of h3
> retracted h3 at=10 deleted
  + command-retracted deleted=true host=h3 sequence=10
  ! nothing
> trigger r3
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T05:00:00Z, send r3/h2/prepare/1 until 2026-11-21T05:00:00Z, send r3/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=12
  + r3 h2: command-sent action=prepare attempt=1 sequence=13
  + r3 h3: command-sent action=prepare attempt=1 sequence=14
  ! nothing
> reply h2 prepare done
  + r3 h2: prepared
> reply h2 prepare to=13 the mirror is gone
  + r3 h2: failed reason=(worker-error action=prepare message="the mirror is gone")
  + run-stopping cause=(failed host=h2) run=r3
  + r3 h1: not-reached reason=(run-failed host=h2)
  + r3 h3: not-reached reason=(run-failed host=h2)
  + run-ended counts=(failed=1 not-reached=2) result=failed run=r3
  ~ hint h1 h3: r3 failed
  ! retract 12 of h1, retract 14 of h3
> state
  r3 failed
  h1 not-reached: the run was ended by the failure of h2
  h2 failed: prepare failed: the mirror is gone
  h3 not-reached: the run was ended by the failure of h2
