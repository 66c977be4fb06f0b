# With `max-preparing` hosts are prepared in the order of turns, and upgraded as they are prepared.
> host h1
> host h2
> host h3
> host h4
> put-config debian rollout/max-preparing=0
  = refused: rollout/max-preparing: must be at least 1; leave it out to prepare all at once
> put-config debian rollout/retries/backoff=0s
  = refused: rollout/retries/backoff: must be at least 1s, or left out
> put-config debian rollout/max-preparing=2 rollout/retries/prepare=1 rollout/retries/backoff=1m rollout/max-failures=1
  + config-replaced actor=admin config=(rollout=(max-failures=1 max-preparing=2 retries=(backoff=1m max-backoff=1h prepare=1)) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-failures=1 max-preparing=2 retries=(backoff=1m max-backoff=1h prepare=1)) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T02:00:00Z rollout=(max-failures=1 max-preparing=2 retries=(backoff=1m max-backoff=1h prepare=1)) run=r1 trigger=(operator actor=admin)
  + upgrades-began run=r1
  + r1 h1: prepare-began
  + r1 h2: prepare-began
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z
> explain h3
  waiting to be prepared: 2 others are prepared first (max-preparing) | status=pending | since=2026-11-21T01:00:00Z | why=hosts-preparing@2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
# h2 is upgraded before h3 and h4 are even told to prepare; it no longer counts then.
> reply h2 prepare done
  + r1 h2: prepared
  + r1 h2: slot-granted group=default provider=embedded
  + r1 h3: prepare-began
  ! send r1/h2/upgrade/1 until 2026-11-21T02:00:00Z, send r1/h3/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=5
  + r1 h3: command-sent action=prepare attempt=1 sequence=6
  ! nothing
> explain h4
  waiting to be prepared: 2 others are prepared first (max-preparing) | status=pending | since=2026-11-21T01:00:00Z | why=hosts-preparing@2026-11-21T02:00:00Z
# h1 fails, and is prepared again later: meanwhile others are.
> reply h1 prepare to=2 error no-space
  + r1 h1: prepare-failed reason=(worker-error action=prepare message="error no-space") until=2026-11-21T01:01:48Z
  + r1 h4: prepare-began
  ! send r1/h4/prepare/1 until 2026-11-21T02:00:00Z
> explain h1
  prepare failed: error no-space | status=pending | since=2026-11-21T01:00:00Z | why=worker-error@2026-11-21T01:01:48Z | in-run=worker-error
> deliver
  + r1 h4: command-sent action=prepare attempt=1 sequence=8
  ! nothing
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
> wait 59
> tick
> wait 61
> tick
> deliver
# Its first answer once more, which names the first attempt.
> reply h1 prepare to=2 error no-space
  + ignored host=h1 reply=(action=prepare result=error) sequence=10 why=nothing-outstanding
# Room for it comes with an answer of another host. One that names no command may be to an earlier attempt, so that it is the last.
> reply h3 prepare error no-space
  + r1 h3: failed reason=(worker-error action=prepare message="error no-space")
  + r1 h1: prepare-began
  ! send r1/h1/prepare/2 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=2 sequence=12
  ! nothing
# That was its last attempt.
> reply h1 prepare to=12 error no-space
  + r1 h1: failed reason=(worker-error action=prepare message="error no-space")
  + run-stopping cause=(failed host=h1) run=r1
  + r1 h4: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=2 not-reached=1 upgraded=1) result=failed run=r1
  ~ hint h4: r1 failed
  ! retract 8 of h4
> state
  r1 failed
  h1 failed: prepare failed: error no-space
  h2 upgraded
  h3 failed: prepare failed: error no-space
  h4 not-reached: the run was ended by the failure of h1
> reply h4 prepare done
  + ignored host=h4 reply=(action=prepare result=done) sequence=14 why=nothing-outstanding
# One is not prepared again once that would be too late.
> put-config debian rollout/max-preparing=1 rollout/retries/prepare=9 rollout/retries/backoff=10m rollout/expected-duration=10m rollout/max-failures=3
  + config-replaced actor=admin config=(rollout=(expected-duration=10m max-failures=3 max-preparing=1 retries=(backoff=10m max-backoff=1h prepare=9)) worker-applications=[(name=debian)]) difference=[(after=3 before=1 path=rollout/max-failures) (after=1 before=2 path=rollout/max-preparing) (after=10m before=1m path=rollout/retries/backoff) (after=9 before=1 path=rollout/retries/prepare) (after=10m path=rollout/expected-duration)]
  = done
> trigger r2 timeout=15m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T01:17:00Z rollout=(expected-duration=10m max-failures=3 max-preparing=1 retries=(backoff=10m max-backoff=1h prepare=9)) run=r2 trigger=(operator actor=admin)
  + upgrades-began run=r2
  + r2 h4: prepare-began
  = done
  ! send r2/h4/prepare/1 until 2026-11-21T01:17:00Z, retract 8 of h4
> deliver
  + r2 h4: command-sent action=prepare attempt=1 sequence=15
  ! retract 8 of h4
> reply h1 prepare to=15 error no-space
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h1: cancelled reason=(run-cancelled actor=admin)
  + r2 h2: cancelled reason=(run-cancelled actor=admin)
  + r2 h3: cancelled reason=(run-cancelled actor=admin)
  + r2 h4: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=4) result=cancelled run=r2
  = done
  ~ hint h4: r2 cancelled
  ! retract 8 of h4, retract 15 of h4
> reply h3 prepare done
  + ignored host=h3 reply=(action=prepare result=done) sequence=17 why=nothing-outstanding
# What is left of a run ends with it: one that is to be prepared again says why, and so does one that was never told.
> put-config debian rollout/max-preparing=1 rollout/retries/prepare=9 rollout/retries/backoff=1m
  + config-replaced actor=admin config=(rollout=(max-preparing=1 retries=(backoff=1m max-backoff=1h prepare=9)) worker-applications=[(name=debian)]) difference=[(before=10m path=rollout/expected-duration) (after=0 before=3 path=rollout/max-failures) (after=1m before=10m path=rollout/retries/backoff)]
  = done
> trigger r3 timeout=40m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T01:42:00Z rollout=(max-preparing=1 retries=(backoff=1m max-backoff=1h prepare=9)) run=r3 trigger=(operator actor=admin)
  + upgrades-began run=r3
  + r3 h4: prepare-began
  = done
  ! send r3/h4/prepare/1 until 2026-11-21T01:42:00Z, retract 8 of h4, retract 15 of h4
> deliver
  + r3 h4: command-sent action=prepare attempt=1 sequence=18
  ! retract 8 of h4, retract 15 of h4
> pause
  + site-paused actor=admin cause=operator reason="the fair is on"
  = done
> reply h1 prepare to=18 error no-space
> explain h2
  the site is paused by admin: the fair is on | status=pending | since=2026-11-21T01:02:00Z | why=paused@2026-11-21T01:42:00Z
> resume
  + site-resumed actor=admin
  = done
> state
  r3 active
  h1 pending
  h2 pending
  h3 pending
  h4 preparing
> wait 2401
> tick
  + r3 h1: not-reached reason=(run-timed-out waited-for=(hosts-preparing hosts=1))
  + r3 h2: not-reached reason=(run-timed-out waited-for=(hosts-preparing hosts=1))
  + r3 h3: not-reached reason=(run-timed-out waited-for=(hosts-preparing hosts=1))
  + r3 h4: timed-out reason=(no-reply action=prepare)
  + run-ended counts=(not-reached=3 timed-out=1) result=timed-out run=r3
  ! retract 8 of h4, retract 15 of h4, retract 18 of h4
> state
  r3 timed-out
  h1 not-reached: the run timed out before its turn: 1 other was prepared first (max-preparing)
  h2 not-reached: the run timed out before its turn: 1 other was prepared first (max-preparing)
  h3 not-reached: the run timed out before its turn: 1 other was prepared first (max-preparing)
  h4 timed-out: no reply to prepare before not-after
