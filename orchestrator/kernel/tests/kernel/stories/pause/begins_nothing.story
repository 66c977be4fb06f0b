# While a site is paused, no run starts, and hosts of the active one do not begin. What is under way is finished.
> host h1
> host h2
> put-config debian maintenance-windows=Saturday~01:00~4h rollout/max-concurrent=2
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=01:00 timezone=site-local)] rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=01:00 timezone=site-local)] rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> pause
  + site-paused actor=admin cause=operator reason="the fair is on"
  = done
> trigger r1
  = refused: the site is paused by admin: the fair is on; `os-upgrade resume` ends that
> due r1
> resume
  + site-resumed actor=admin
  = done
> resume
  = done
> settings embedded default:2
  + settings-adopted settings=(auto-approve=true groups=(default=2))
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> pause until=2026-11-21T00:00:00Z
  = refused: until: 2026-11-21T00:00:00Z has passed, it is 2026-11-21T01:00:00Z; give a later time, or none to pause until `os-upgrade resume`
> pause validate
  = valid
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z, send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> sent h1 upgrade
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> sent h2 upgrade
  + r1 h2: command-sent action=upgrade attempt=1 sequence=7
  ! nothing
> pause
  + site-paused actor=admin cause=operator reason="the fair is on"
  = done
> explain h1
  its worker has not answered upgrade yet | status=upgrading | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T05:00:00Z
> reply h1 upgrade reboot-required
  + r1 h1: reboot-required
  ! send r1/h1/reboot/1 until 2026-11-21T05:00:00Z
> sent h1 reboot
  + r1 h1: command-sent action=reboot attempt=1 sequence=9
  ! nothing
> reply h1 reboot done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
> pause why=longer by=anna
  + site-paused actor=anna cause=operator reason=longer
  = done
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r1
> resume why=enough
  + site-resumed actor=admin reason=enough
  = done
# A host that is prepared waits; each says why.
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=12
  + r2 h2: command-sent action=prepare attempt=1 sequence=13
  ! nothing
> pause
  + site-paused actor=admin cause=operator reason="the fair is on"
  = done
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
> explain h1
  the site is paused by admin: the fair is on | status=prepared | since=2026-11-21T01:00:00Z | why=paused@2026-11-21T05:00:00Z | in-run=paused
> explain h2
  the site is paused by admin: the fair is on | status=prepared | since=2026-11-21T01:00:00Z | why=paused@2026-11-21T05:00:00Z
> resume
  + site-resumed actor=admin
  + r2 h1: slot-granted group=default provider=embedded
  + r2 h2: slot-granted group=default provider=embedded
  = done
  ! send r2/h1/upgrade/1 until 2026-11-21T05:00:00Z, send r2/h2/upgrade/1 until 2026-11-21T05:00:00Z
# Hosts whose turn never came were kept by it.
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  = done
> tick
> sent h1 upgrade
  + r2 h1: command-sent action=upgrade attempt=1 sequence=16
  ! send r2/h2/upgrade/1 until 2026-11-21T05:00:00Z
> sent h2 upgrade
  + r2 h2: command-sent action=upgrade attempt=1 sequence=17
  ! nothing
> reply h1 upgrade done
  + r2 h1: upgraded
  + slot-released host=h1 why=upgraded
> reply h2 upgrade done
  + r2 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(upgraded=2) result=cancelled run=r2
> trigger r3 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T02:00:00Z rollout=(max-concurrent=2) run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T02:00:00Z, send r3/h2/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=20
  + r3 h2: command-sent action=prepare attempt=1 sequence=21
  ! nothing
> pause
  + site-paused actor=admin cause=operator reason="the fair is on"
  = done
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
  + upgrades-began run=r3
> wait 1h
> tick
  + r3 h1: not-reached reason=(run-timed-out waited-for=(paused actor=admin cause=operator reason="the fair is on"))
  + r3 h2: not-reached reason=(run-timed-out waited-for=(paused actor=admin cause=operator reason="the fair is on"))
  + run-ended counts=(not-reached=2) result=timed-out run=r3
> state
  r3 timed-out
  h1 not-reached: the run timed out before its turn: the site is paused by admin: the fair is on
  h2 not-reached: the run timed out before its turn: the site is paused by admin: the fair is on
