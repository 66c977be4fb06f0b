# The site lost its power, and its clock the time: it is behind the newest record. Nothing starts that nobody asked for.
> host h1
> host h2
> settings embedded default:1
> put-config debian maintenance-windows=Saturday~01:00~4h rollout/max-failures=1
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=01:00 timezone=site-local)] rollout=(max-failures=1) worker-applications=[(name=debian)]) difference=[(after=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=01:00 timezone=site-local)] rollout=(max-failures=1) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> clock behind
> due r0
> explain h1
  no run is active; a maintenance window is open until 2026-11-21T05:00:00Z, but the orchestrator's clock is behind the newest record, of 2026-11-21T04:00:00Z | why=no-run,clock-behind@2026-11-21T05:00:00Z
# An operator may start a run, and says by that that the clock is right; then the shell has no doubt any more.
> trigger r1 timeout=2h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T03:00:00Z rollout=(max-failures=1) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T03:00:00Z, send r1/h2/prepare/1 until 2026-11-21T03:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
> clock trusted
> tick
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T03:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
# The power is lost again: the host under way ends, no further one starts, and the deadline holds.
> clock behind
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
> explain h2
  the orchestrator's clock is behind the newest record, of 2026-11-21T04:00:00Z | status=prepared | since=2026-11-21T01:00:00Z | why=clock-behind@2026-11-21T03:00:00Z | in-run=clock-behind
> wait 2h
> tick
  + r1 h2: not-reached reason=(run-timed-out waited-for=(clock-behind newest=2026-11-21T04:00:00Z))
  + run-ended counts=(not-reached=1 upgraded=1) result=timed-out run=r1
> state
  r1 timed-out
  h1 upgraded
  h2 not-reached: the run timed out before its turn: the orchestrator's clock is behind the newest record, of 2026-11-21T04:00:00Z
# No run is recorded as missed, and no host queued for a reboot, until it is known what time it is.
> settings embedded default:1 in-windows queue-required
  + settings-adopted settings=(auto-approve=true reboot=(in-windows=true max-concurrent=1 queue-required=true unreachable-max=0))
> due r2
