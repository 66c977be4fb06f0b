# Runs that start automatically. It is Saturday, 01:00 in UTC and 02:00 in Stockholm.
> settings default:1 zone=Europe/Stockholm
  + settings-adopted settings=(auto-approve=true timezone=Europe/Stockholm)
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> due r0
> explain h1
  no worker has announced itself on it | why=not-announced
> host h1 unreachable
> explain h1
  it is unreachable: no heartbeat arrives from it; no run is active; no run starts automatically: no maintenance windows are configured | why=silent,no-run,no-windows
> put-config debian maintenance-windows=Saturday~02:30~2h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=2h start-time=02:30 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(after=[(days-of-week=Saturday duration=2h start-time=02:30 timezone=site-local)] path=maintenance-windows)]
  = done
> explain h1
  it is unreachable: no heartbeat arrives from it; no run is active; the next starts automatically at 2026-11-21T01:30:00Z | why=silent,no-run@2026-11-21T01:30:00Z
> due r0
> wait 29m
> due r0
> wait 60s
# The window is open, and no host is reachable.
> due r0
> explain h1
  it is unreachable: no heartbeat arrives from it; no run is active; a maintenance window is open until 2026-11-21T03:30:00Z, but no reachable host runs a configured application | why=silent,no-run,no-hosts@2026-11-21T03:30:00Z
> host h1
> clock 31
> due r0
> explain h1
  no run is active; a maintenance window is open until 2026-11-21T03:30:00Z, but the orchestrator's clock is 31 s ahead of NATS | why=no-run,clock-skew@2026-11-21T03:30:00Z
> clock trusted
> sealed no-key
> due r0
> explain h1
  no run is active; a maintenance window is open until 2026-11-21T03:30:00Z, but the strongbox is sealed: `os-upgrade strongbox unseal` gives the instance its key, as does [strongbox] key-file; the instance that leads needs it, which `os-upgrade cluster status` shows | why=no-run,strongbox-sealed@2026-11-21T03:30:00Z
> trigger r0 validate
  = refused: the strongbox is sealed: `os-upgrade strongbox unseal` gives the instance its key, as does [strongbox] key-file; the instance that leads needs it, which `os-upgrade cluster status` shows
> sealed no-secret lock-server
> due r0
> trigger r0
  = refused: the strongbox has no secret lock-server: `os-upgrade strongbox put lock-server` stores it
> sealed none
# The start waits until it is known whether a host is off; otherwise the run would wait for that host until its end.
> host h2 awaited
> due r0
> explain h1
  no run is active; a maintenance window is open until 2026-11-21T03:30:00Z, but the heartbeat of a host is awaited | why=no-run,hosts-awaited
> explain h2
  its heartbeat is awaited; no run is active; a maintenance window is open until 2026-11-21T03:30:00Z, but the heartbeat of a host is awaited | why=heartbeat-awaited,no-run,hosts-awaited
> host h2 unreachable
> host h1 awaited
> due r0
> explain h1
  its heartbeat is awaited; no run is active; a maintenance window is open until 2026-11-21T03:30:00Z, but the heartbeat of a host is awaited | why=heartbeat-awaited,no-run,hosts-awaited
> gone h2
> host h1
> due r1
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T03:30:00Z rollout=() run=r1 trigger=(window end=2026-11-21T03:30:00Z start=2026-11-21T01:30:00Z)
> due r2
> explain h1
  its prepare command is about to be sent | status=pending | since=2026-11-21T01:30:00Z | why=command-unsent@2026-11-21T03:30:00Z
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
  ! send r1/h1/prepare/1 until 2026-11-21T03:30:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T03:30:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=4
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(upgraded=1) result=completed run=r1
> state
  r1 completed
  h1 upgraded
# At most one run starts in an occurrence, also when another configuration moves its start or end somewhat earlier.
> due r2
> explain h1
  no run is active; the next starts automatically at 2026-11-28T01:30:00Z; the maintenance window that is open until 2026-11-21T03:30:00Z starts none, because it has had its run, r1 | why=no-run@2026-11-28T01:30:00Z,window-used@2026-11-21T03:30:00Z
> put-config debian maintenance-windows=Saturday~02:00~3h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=3h start-time=02:00 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(after=[(days-of-week=Saturday duration=3h start-time=02:00 timezone=site-local)] before=[(days-of-week=Saturday duration=2h start-time=02:30 timezone=site-local)] path=maintenance-windows)]
  = done
> due r2
> put-config debian maintenance-windows=Saturday~02:00~3h;Saturday~04:00~3h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=3h start-time=02:00 timezone=site-local) (days-of-week=Saturday duration=3h start-time=04:00 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(after=[(days-of-week=Saturday duration=3h start-time=02:00 timezone=site-local) (days-of-week=Saturday duration=3h start-time=04:00 timezone=site-local)] before=[(days-of-week=Saturday duration=3h start-time=02:00 timezone=site-local)] path=maintenance-windows)]
  = done
> due r2
> explain h1
  no run is active; the next starts automatically at 2026-11-28T01:00:00Z; the maintenance window that is open until 2026-11-21T06:00:00Z starts none, because it has had its run, r1 | why=no-run@2026-11-28T01:00:00Z,window-used@2026-11-21T06:00:00Z
# A run started by an operator does not count, and while it is active none starts.
> wait 167h
> explain h1
  no run is active; the next starts automatically at 2026-11-28T01:00:00Z | why=no-run@2026-11-28T01:00:00Z
> trigger r3 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-28T01:30:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-28T01:30:00Z
> due r4
> wait 30m
> explain h1
  its prepare command is about to be sent | status=pending | since=2026-11-28T00:30:00Z | why=command-unsent@2026-11-28T01:30:00Z
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r3
  + r3 h1: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=1) result=cancelled run=r3
  = done
  ! nothing
> state
  r3 cancelled
  h1 cancelled: the run was cancelled by admin
> due r4
> explain h1
  no run is active; the next starts automatically at 2026-12-05T01:00:00Z; the maintenance window that is open until 2026-11-28T06:00:00Z starts none, because run r3 was cancelled in it | why=no-run@2026-12-05T01:00:00Z,window-used@2026-11-28T06:00:00Z
# A cancel holds for the rest of the occurrence.
> wait 6h
> tick
> state
  r3 cancelled
  h1 cancelled: the run was cancelled by admin
# Deny windows take precedence, and a new occurrence begins when one ends.
> put-config debian maintenance-windows=Saturday~02:00~4h deny-windows=Saturday~03:00~1h;Saturday~05:30~1h
  + config-replaced actor=admin config=(deny-windows=[(days-of-week=Saturday duration=1h start-time=03:00 timezone=site-local) (days-of-week=Saturday duration=1h start-time=05:30 timezone=site-local)] maintenance-windows=[(days-of-week=Saturday duration=4h start-time=02:00 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(after=[(days-of-week=Saturday duration=4h start-time=02:00 timezone=site-local)] before=[(days-of-week=Saturday duration=3h start-time=02:00 timezone=site-local) (days-of-week=Saturday duration=3h start-time=04:00 timezone=site-local)] path=maintenance-windows) (after=[(days-of-week=Saturday duration=1h start-time=03:00 timezone=site-local) (days-of-week=Saturday duration=1h start-time=05:30 timezone=site-local)] path=deny-windows)]
  = done
> wait 161h30m
> due r5
> state
  r3 cancelled
  h1 cancelled: the run was cancelled by admin
> wait 30m
> due r6
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-12-05T02:00:00Z rollout=() run=r6 trigger=(window end=2026-12-05T02:00:00Z start=2026-12-05T01:00:00Z)
  ! send r6/h1/prepare/1 until 2026-12-05T02:00:00Z
> state
  r6 active
  h1 pending
> wait 1h
> due r6
  + r6 h1: timed-out reason=(not-sent action=prepare)
  + run-ended counts=(timed-out=1) result=timed-out run=r6
  ! nothing
> state
  r6 timed-out
  h1 timed-out: prepare could not be sent before not-after
# Too little of the occurrence is left.
> put-config debian maintenance-windows=Sunday~02:00~4h minimum-remaining=3h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Sunday duration=4h start-time=02:00 timezone=site-local)] minimum-remaining=3h worker-applications=[(name=debian)]) difference=[(before=[(days-of-week=Saturday duration=1h start-time=03:00 timezone=site-local) (days-of-week=Saturday duration=1h start-time=05:30 timezone=site-local)] path=deny-windows) (after=[(days-of-week=Sunday duration=4h start-time=02:00 timezone=site-local)] before=[(days-of-week=Saturday duration=4h start-time=02:00 timezone=site-local)] path=maintenance-windows) (after=3h path=minimum-remaining)]
  = done
> wait 22h
> explain h1
  no run is active; the next starts automatically at 2026-12-06T01:00:00Z | why=no-run@2026-12-06T01:00:00Z
> put-config debian maintenance-windows=Sunday~02:00~4h minimum-remaining=4h1s
  = refused: minimum-remaining: no occurrence of the maintenance windows is longer than 4h1s; write less
> put-config debian maintenance-windows=Sunday~02:00~4h;Sunday~02:00~4h
  = refused: maintenance-windows/1: the same window is listed twice, also at maintenance-windows/0
> put-config debian maintenance-windows=Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday~00:00~25h
  = refused: maintenance-windows: from 2026-10-25T23:00:00Z on they overlap one another for more than 366 days, so that none begins after that; shorten their duration, such as every day from 00:00 for 24h, or leave days out
> put-config debian maintenance-windows=Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday~00:00~24h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week="Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday" duration=1d start-time=00:00 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(after=[(days-of-week="Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday" duration=1d start-time=00:00 timezone=site-local)] before=[(days-of-week=Sunday duration=4h start-time=02:00 timezone=site-local)] path=maintenance-windows) (before=3h path=minimum-remaining)]
  = done
> wait 1h
> due r7
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-12-06T23:00:00Z rollout=() run=r7 trigger=(window end=2026-12-06T23:00:00Z start=2026-12-05T23:00:00Z)
  ! send r7/h1/prepare/1 until 2026-12-06T23:00:00Z
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r7
  + r7 h1: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=1) result=cancelled run=r7
  = done
  ! nothing
> state
  r7 cancelled
  h1 cancelled: the run was cancelled by admin
> due r8
> wait 24h
> due r8
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-12-07T23:00:00Z rollout=() run=r8 trigger=(window end=2026-12-07T23:00:00Z start=2026-12-06T23:00:00Z)
  ! send r8/h1/prepare/1 until 2026-12-07T23:00:00Z
# A cancel also counts when the run has failed already; the run stays failed, and a repeated cancel changes nothing.
> settings default:2 zone=Europe/Stockholm
  + settings-adopted settings=(auto-approve=true groups=(default=2) timezone=Europe/Stockholm)
> put-config debian maintenance-windows=Tuesday~02:00~4h rollout/max-concurrent=2
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Tuesday duration=4h start-time=02:00 timezone=site-local)] rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=[(days-of-week=Tuesday duration=4h start-time=02:00 timezone=site-local)] before=[(days-of-week="Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday" duration=1d start-time=00:00 timezone=site-local)] path=maintenance-windows) (after=(max-concurrent=2) path=rollout)]
  = done
> host h2
> wait 24h
> trigger r9 timeout=8h
  + r8 h1: timed-out reason=(not-sent action=prepare)
  + run-ended counts=(timed-out=1) result=timed-out run=r8
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-12-08T09:00:00Z rollout=(max-concurrent=2) run=r9 trigger=(operator actor=admin)
  = done
  ! send r9/h1/prepare/1 until 2026-12-08T09:00:00Z, send r9/h2/prepare/1 until 2026-12-08T09:00:00Z
> deliver
  + r9 h1: command-sent action=prepare attempt=1 sequence=6
  + r9 h2: command-sent action=prepare attempt=1 sequence=7
  ! nothing
> reply h1 prepare done
  + r9 h1: prepared
> reply h2 prepare done
  + r9 h2: prepared
  + upgrades-began run=r9
  + r9 h2: slot-granted group=default provider=embedded
  + r9 h1: slot-granted group=default provider=embedded
  ! send r9/h1/upgrade/1 until 2026-12-08T09:00:00Z, send r9/h2/upgrade/1 until 2026-12-08T09:00:00Z
> deliver
  + r9 h1: command-sent action=upgrade attempt=1 sequence=10
  + r9 h2: command-sent action=upgrade attempt=1 sequence=11
  ! nothing
> reply h1 upgrade it broke
  + r9 h1: failed reason=(worker-error action=upgrade message="it broke")
  + run-stopping cause=(failed host=h1) run=r9
  ~ hint h2: r9 failed
> wait 1h
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r9
  = done
  ~ hint h2: r9 failed
> cancel
  = done
> reply h2 upgrade done
  + r9 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(failed=1 upgraded=1) result=failed run=r9
> state
  r9 failed
  h1 failed: upgrade failed: it broke
  h2 upgraded
  slot h1: begun=true command=(action=upgrade sequence=10) failed=true group=default provider=embedded run=r9 since=2026-12-08T01:00:00Z standing=held unsent-at-fence=null
> due r10
> explain h2
  no run is active; the next starts automatically at 2026-12-15T01:00:00Z; the maintenance window that is open until 2026-12-08T05:00:00Z starts none, because it has had a run or a cancel, or the site was restored in it | why=no-run@2026-12-15T01:00:00Z,window-used@2026-12-08T05:00:00Z
# No run starts in an occurrence with less than minimum-remaining left; then there is no blocker.
> put-config debian maintenance-windows=Wednesday~02:00~4h minimum-remaining=3h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Wednesday duration=4h start-time=02:00 timezone=site-local)] minimum-remaining=3h worker-applications=[(name=debian)]) difference=[(after=[(days-of-week=Wednesday duration=4h start-time=02:00 timezone=site-local)] before=[(days-of-week=Tuesday duration=4h start-time=02:00 timezone=site-local)] path=maintenance-windows) (before=(max-concurrent=2) path=rollout) (after=3h path=minimum-remaining)]
  = done
> explain h2
  no run is active; the next starts automatically at 2026-12-09T01:00:00Z | why=no-run@2026-12-09T01:00:00Z
> wait 23h
> clock 99
> explain h2
  no run is active; a maintenance window is open until 2026-12-09T05:00:00Z, but the orchestrator's clock is 99 s ahead of NATS | why=no-run,clock-skew@2026-12-09T02:00:00Z
> clock trusted
> wait 60m
> wait 1s
> due r10
> explain h2
  no run is active; the next starts automatically at 2026-12-16T01:00:00Z | why=no-run@2026-12-16T01:00:00Z
# The jitter of a start is the same for a leader that takes over before it.
> put-config debian maintenance-windows=Thursday~02:00~4h start-jitter=2h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Thursday duration=4h start-time=02:00 timezone=site-local)] start-jitter=2h worker-applications=[(name=debian)]) difference=[(after=[(days-of-week=Thursday duration=4h start-time=02:00 timezone=site-local)] before=[(days-of-week=Wednesday duration=4h start-time=02:00 timezone=site-local)] path=maintenance-windows) (before=3h path=minimum-remaining) (after=2h path=start-jitter)]
  = done
> explain h2
  no run is active; the next starts automatically at 2026-12-10T01:37:04Z | why=no-run@2026-12-10T01:37:04Z
> wait 23h
> due r10
> explain h2
  no run is active; the next starts automatically at 2026-12-10T01:37:04Z | why=no-run@2026-12-10T01:37:04Z
> fence
  + fenced leader=one sequence=14
  + fence-passed sequence=14
> explain h2
  no run is active; the next starts automatically at 2026-12-10T01:37:04Z | why=no-run@2026-12-10T01:37:04Z
> wait 37m
> wait 2s
> due r10
> wait 1s
> due r11
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-12-10T05:00:00Z rollout=() run=r11 trigger=(window end=2026-12-10T05:00:00Z start=2026-12-10T01:00:00Z)
  ! send r11/h1/prepare/1 until 2026-12-10T05:00:00Z, send r11/h2/prepare/1 until 2026-12-10T05:00:00Z
