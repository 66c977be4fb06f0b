# A pause ends by itself when its end has come: not while the time is in doubt, nor before hosts could contradict it.
> host h1
> put-config debian maintenance-windows=Saturday~01:00~4h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=01:00 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(after=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=01:00 timezone=site-local)] worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> pause until=2026-11-21T02:00:00Z
  + site-paused actor=admin cause=operator reason="the fair is on" until=2026-11-21T02:00:00Z
  = done
> explain h1
  no run is active; the next starts automatically at 2026-11-21T02:00:00Z | why=no-run@2026-11-21T02:00:00Z
> due r1
> wait 59m
> tick
> due r1
> clock disputed
> wait 2m
> tick
> explain h1
  no run is active; a maintenance window is open until 2026-11-21T05:00:00Z, but the site is paused by admin: the fair is on | why=no-run,paused@2026-11-21T05:00:00Z
> clock trusted
> control-unread
> tick
> control-read
> tick
  + site-resumed
> due r1
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(window end=2026-11-21T05:00:00Z start=2026-11-21T01:00:00Z)
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z
# Without an end, the run of a window is missed.
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> sent h1 upgrade
  + r1 h1: command-sent action=upgrade attempt=1 sequence=4
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(upgraded=1) result=completed run=r1
> pause
  + site-paused actor=admin cause=operator reason="the fair is on"
  = done
> explain h1
  no run is active; the site is paused by admin: the fair is on; the maintenance window that is open until 2026-11-21T05:00:00Z starts none, because it has had its run, r1 | why=no-run,paused,window-used@2026-11-21T05:00:00Z
> wait 7d
> due r2
> wait 5h
> missed
  + run-missed end=2026-11-28T05:00:00Z latest=2026-11-28T05:00:00Z reason=(paused actor=admin cause=operator reason="the fair is on") start=2026-11-28T01:00:00Z
> resume
  + site-resumed actor=admin
  = done
> explain h1
  no run is active; the next starts automatically at 2026-12-05T01:00:00Z | why=no-run@2026-12-05T01:00:00Z
