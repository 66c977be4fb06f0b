# No host is begun with less than `expected-duration` left of the run.
> host h1
> host h2
> host h3
> put-config debian rollout/expected-duration=0s
  = refused: rollout/expected-duration: must be at least 1s, or left out
> put-config debian rollout/expected-duration=20m
  + config-replaced actor=admin config=(rollout=(expected-duration=20m) worker-applications=[(name=debian)]) difference=[(after=(rollout=(expected-duration=20m) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r0 timeout=20m
  = refused: timeout: a host takes 20m (rollout.expected-duration), so that none would be begun: write more than that
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:00:00Z rollout=(expected-duration=20m) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z, send r1/h3/prepare/1 until 2026-11-21T02:00:00Z
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
  ! send r1/h1/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> wait 1500
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=10
  ! nothing
# h2 began with 35 minutes left. What is left now is too short for another host, and h2 is finished all the same.
> wait 900
> tick
> explain h3
  waiting for its turn: h2 is under way | status=prepared | since=2026-11-21T01:00:00Z | why=host-under-way@2026-11-21T02:00:00Z
> wait 60
> control-unread
> tick
> control-read
> tick
  + r1 h3: not-reached reason=(no-time-left expected=20m waited-for=(host-under-way host=h2))
> state
  r1 active
  h1 upgraded
  h2 upgrading
  h3 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its turn: h2 was under way
  slot h2: begun=true command=(action=upgrade sequence=10) group=default provider=embedded run=r1 since=2026-11-21T01:25:00Z standing=held unsent-at-fence=null
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(not-reached=1 upgraded=2) result=timed-out run=r1
> state
  r1 timed-out
  h1 upgraded
  h2 upgraded
  h3 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its turn: h2 was under way
# A run in which nobody is at work ends at once.
> trigger r2 timeout=21m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:02:00Z rollout=(expected-duration=20m) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T02:02:00Z, send r2/h2/prepare/1 until 2026-11-21T02:02:00Z, send r2/h3/prepare/1 until 2026-11-21T02:02:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=12
  + r2 h2: command-sent action=prepare attempt=1 sequence=13
  + r2 h3: command-sent action=prepare attempt=1 sequence=14
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> wait 61
> tick
  + r2 h1: not-reached reason=(no-time-left expected=20m waited-for=(hosts-unprepared host=h2 others=1))
  + r2 h2: timed-out reason=(no-reply action=prepare)
  + r2 h3: timed-out reason=(no-reply action=prepare)
  + run-ended counts=(not-reached=1 timed-out=2) result=timed-out run=r2
  ! retract 13 of h2, retract 14 of h3
> state
  r2 timed-out
  h1 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its turn: h2 and 1 other host had not answered prepare
  h2 timed-out: no reply to prepare before not-after
  h3 timed-out: no reply to prepare before not-after
