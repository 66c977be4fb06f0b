# What no longer fits is not begun, wherever the time went: in a drain, at a lock server, or in the reboot queue.
> host h1
> node h1
> host h2
> put-config debian rollout/expected-duration=20m
  + config-replaced actor=admin config=(rollout=(expected-duration=20m) worker-applications=[(name=debian)]) difference=[(after=(rollout=(expected-duration=20m) worker-applications=[(name=debian)]) path=)]
  = created
> settings kubernetes default:1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=30m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T01:30:00Z rollout=(expected-duration=20m) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T01:30:00Z, send r1/h2/prepare/1 until 2026-11-21T01:30:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
# Its drain takes so long that less is left than a host takes: its node is uncordoned, and its slot is free.
> wait 601
> cluster h1 drained
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + r1 h1: not-reached reason=(no-time-left expected=20m waited-for=node-undrained)
  + node host=h1 step=(uncordon-due release=not-needed)
  + r1 h2: not-reached reason=(no-time-left expected=20m waited-for=(host-under-way host=h1))
  + run-ended counts=(not-reached=2) result=timed-out run=r1
  ! uncordon h1 under 1
> explain h1
  it has held a slot of group default since 2026-11-21T01:00:00Z: less was left of the run than the 20m that a host takes (expected-duration) before its upgrade: its node was being drained; its node is being uncordoned since 2026-11-21T01:10:01Z; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,node-under-way,no-run,no-windows
> state
  r1 timed-out
  h1 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its upgrade: its node was being drained
  h2 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its turn: h1 was under way
  slot h1: begun=false command=null group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> tick
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + slot-released host=h1 why=not-needed
  ! nothing
> state
  r1 timed-out
  h1 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its upgrade: its node was being drained
  h2 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its turn: h1 was under way
# A lock server that grants too late is given the slot back.
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
> trigger r2 timeout=30m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T01:40:01Z rollout=(expected-duration=20m) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T01:40:01Z, send r2/h2/prepare/1 until 2026-11-21T01:40:01Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=6
  + r2 h2: command-sent action=prepare attempt=1 sequence=7
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
  + slot-requested group=default host=h2 run=r2
  + r2 h2: waiting reason=(asking-for-slot group=default)
  ! lock h2 of default
> wait 601
> locked h2 granted
  + r2 h1: not-reached reason=(no-time-left expected=20m waited-for=(asking-for-slot group=default))
  + r2 h2: not-reached reason=(no-time-left expected=20m waited-for=(asking-for-slot group=default))
  + slot-release-due host=h2 why=not-needed
  + run-ended counts=(not-reached=2) result=timed-out run=r2
  ! unlock h2 of default
> state
  r2 timed-out
  h1 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its turn: asking for a slot of group default
  h2 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its turn: asking for a slot of group default
  slot h2: begun=false command=null group=default provider=external run=r2 since=2026-11-21T01:20:02Z standing=(releasing=(why=not-needed)) unsent-at-fence=null
> unlocked h2 granted
  + slot-released host=h2 why=not-needed
  ! nothing
> state
  r2 timed-out
  h1 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its turn: asking for a slot of group default
  h2 not-reached: less was left of the run than the 20m that a host takes (expected-duration) before its turn: asking for a slot of group default
# A reboot that is bound to the windows does not begin when less than that is left, and windows must be longer.
> put-config debian maintenance-windows=Saturday~01:00~10m rollout/expected-duration=20m
  = refused: rollout/expected-duration: no occurrence of the maintenance windows is longer than 20m; write less
> settings in-windows default:1
  + settings-adopted settings=(auto-approve=true reboot=(in-windows=true max-concurrent=1 unreachable-max=0))
> host h3 boot=a1
> put-config debian maintenance-windows=Saturday~01:00~1h rollout/expected-duration=45m
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=1h start-time=01:00 timezone=site-local)] rollout=(expected-duration=45m) worker-applications=[(name=debian)]) difference=[(after=45m before=20m path=rollout/expected-duration) (after=[(days-of-week=Saturday duration=1h start-time=01:00 timezone=site-local)] path=maintenance-windows)]
  = done
> rq add h3
  + reboots-queued actor=admin hosts=[h3]
  = created
> queue
  0 h3 queued: less is left of the maintenance window than the 45m that a host takes (rollout.expected-duration), and reboots are bound to the windows ([reboot] in-windows) | no-time-left
