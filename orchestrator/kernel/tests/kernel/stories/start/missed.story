# Runs that were due and did not start. It is Saturday, 01:00.
> host h1
> put-config debian maintenance-windows=Saturday,Sunday~01:00~2h minimum-remaining=1h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week="Saturday, Sunday" duration=2h start-time=01:00 timezone=site-local)] minimum-remaining=1h worker-applications=[(name=debian)]) difference=[(after=(maintenance-windows=[(days-of-week="Saturday, Sunday" duration=2h start-time=01:00 timezone=site-local)] minimum-remaining=1h worker-applications=[(name=debian)]) path=)]
  = created
# The window is open, but something blocks the run until it is too late for one. A run by an operator is none of the window's.
> sealed no-key
> due r1
> wait 1h
> due r1
> missed
> wait 1s
> missed
  + run-missed end=2026-11-21T03:00:00Z latest=2026-11-21T02:00:00Z reason=(strongbox-sealed why=no-key) start=2026-11-21T01:00:00Z
> missed
> due r1
> sealed none
> due r1
# On the next day nobody leads. It counts once no run can start any more, and the clock of the next leader must be right.
> wait 23h
> takeover
> clock 31
> wait 30m
> missed
> clock trusted
> due r2
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-22T03:00:00Z rollout=() run=r2 trigger=(window end=2026-11-22T03:00:00Z start=2026-11-22T01:00:00Z)
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h1: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=1) result=cancelled run=r2
  = done
# That window had its run. A week later both were missed, and the first window of a changed configuration counts from then on.
> wait 8d
> clock unmeasured
> missed
> clock trusted
> missed
  + run-missed end=2026-11-28T03:00:00Z latest=2026-11-28T02:00:00Z reason=no-leader start=2026-11-28T01:00:00Z
  + run-missed end=2026-11-29T03:00:00Z latest=2026-11-29T02:00:00Z reason=no-leader start=2026-11-29T01:00:00Z
> put-config debian maintenance-windows=Sunday~00:00~4h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Sunday duration=4h start-time=00:00 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(after=[(days-of-week=Sunday duration=4h start-time=00:00 timezone=site-local)] before=[(days-of-week="Saturday, Sunday" duration=2h start-time=01:00 timezone=site-local)] path=maintenance-windows) (before=1h path=minimum-remaining)]
  = done
> missed
> wait 7d
> missed
  + run-missed end=2026-12-06T04:00:00Z latest=2026-12-06T04:00:00Z reason=no-leader start=2026-12-06T00:00:00Z
# Nobody leads for a year: of the oldest only the number is recorded.
> put-config debian maintenance-windows=Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday~10:00~1h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week="Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday" duration=1h start-time=10:00 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(after=[(days-of-week="Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday" duration=1h start-time=10:00 timezone=site-local)] before=[(days-of-week=Sunday duration=4h start-time=00:00 timezone=site-local)] path=maintenance-windows)]
  = done
> wait 364d
> takeover
> missed
  + run-missed end=2027-11-16T11:00:00Z latest=2027-11-16T11:00:00Z reason=no-leader start=2027-11-16T10:00:00Z unrecorded=344
  + run-missed end=2027-11-17T11:00:00Z latest=2027-11-17T11:00:00Z reason=no-leader start=2027-11-17T10:00:00Z
  + run-missed end=2027-11-18T11:00:00Z latest=2027-11-18T11:00:00Z reason=no-leader start=2027-11-18T10:00:00Z
  + run-missed end=2027-11-19T11:00:00Z latest=2027-11-19T11:00:00Z reason=no-leader start=2027-11-19T10:00:00Z
  + run-missed end=2027-11-20T11:00:00Z latest=2027-11-20T11:00:00Z reason=no-leader start=2027-11-20T10:00:00Z
  + run-missed end=2027-11-21T11:00:00Z latest=2027-11-21T11:00:00Z reason=no-leader start=2027-11-21T10:00:00Z
  + run-missed end=2027-11-22T11:00:00Z latest=2027-11-22T11:00:00Z reason=no-leader start=2027-11-22T10:00:00Z
  + run-missed end=2027-11-23T11:00:00Z latest=2027-11-23T11:00:00Z reason=no-leader start=2027-11-23T10:00:00Z
  + run-missed end=2027-11-24T11:00:00Z latest=2027-11-24T11:00:00Z reason=no-leader start=2027-11-24T10:00:00Z
  + run-missed end=2027-11-25T11:00:00Z latest=2027-11-25T11:00:00Z reason=no-leader start=2027-11-25T10:00:00Z
  + run-missed end=2027-11-26T11:00:00Z latest=2027-11-26T11:00:00Z reason=no-leader start=2027-11-26T10:00:00Z
  + run-missed end=2027-11-27T11:00:00Z latest=2027-11-27T11:00:00Z reason=no-leader start=2027-11-27T10:00:00Z
  + run-missed end=2027-11-28T11:00:00Z latest=2027-11-28T11:00:00Z reason=no-leader start=2027-11-28T10:00:00Z
  + run-missed end=2027-11-29T11:00:00Z latest=2027-11-29T11:00:00Z reason=no-leader start=2027-11-29T10:00:00Z
  + run-missed end=2027-11-30T11:00:00Z latest=2027-11-30T11:00:00Z reason=no-leader start=2027-11-30T10:00:00Z
  + run-missed end=2027-12-01T11:00:00Z latest=2027-12-01T11:00:00Z reason=no-leader start=2027-12-01T10:00:00Z
  + run-missed end=2027-12-02T11:00:00Z latest=2027-12-02T11:00:00Z reason=no-leader start=2027-12-02T10:00:00Z
  + run-missed end=2027-12-03T11:00:00Z latest=2027-12-03T11:00:00Z reason=no-leader start=2027-12-03T10:00:00Z
  + run-missed end=2027-12-04T11:00:00Z latest=2027-12-04T11:00:00Z reason=no-leader start=2027-12-04T10:00:00Z
  + run-missed end=2027-12-05T11:00:00Z latest=2027-12-05T11:00:00Z reason=no-leader start=2027-12-05T10:00:00Z
# A run that an operator started blocks that of the window.
> trigger r3 timeout=12h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2027-12-06T13:30:01Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
> wait 9h
> due r4
> wait 31m
> missed
  + run-missed end=2027-12-06T11:00:00Z latest=2027-12-06T11:00:00Z reason=(run-active run=r3) start=2027-12-06T10:00:00Z
# Without windows nothing is due.
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(before=[(days-of-week="Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday" duration=1h start-time=10:00 timezone=site-local)] path=maintenance-windows)]
  = done
> wait 8d
> missed
  + r3 h1: timed-out reason=(not-sent action=prepare)
  + run-ended counts=(timed-out=1) result=timed-out run=r3
