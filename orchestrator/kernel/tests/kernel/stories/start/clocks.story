# Nothing starts, ends or times out while the time is in doubt, whoever grants the slots; afterwards the run continues.
> host h1
> host h2
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> clock 31
> trigger r1
  = refused: the orchestrator's clock is 31 s ahead of NATS; no run starts until the time is certain
> clock trusted
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> clock -31
# The answer arrives during the skew: the slot would be idle, so it is given back, and requested again.
> locked h1 granted
  + r1 h1: turn-lost
  + slot-release-due host=h1 why=not-needed
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! nothing
> tick
> explain h1
  the orchestrator's clock is 31 s behind NATS | status=prepared | since=2026-11-21T01:00:00Z | why=clock-skew | in-run=clock-skew
> clock trusted
> tick
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> locked h1 granted
  + r1 h1: slot-granted group=default provider=external
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> settings embedded default:1
  + settings-adopted settings=(auto-approve=true)
> clock 99
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-release-due host=h1 why=upgraded
  ! unlock h1 of default
> explain h2
  the orchestrator's clock is 99 s ahead of NATS | status=prepared | since=2026-11-21T01:00:00Z | why=clock-skew | in-run=clock-skew
> clock 98
> tick
> unlocked h1 granted
  + slot-released host=h1 why=upgraded
  ! nothing
> clock trusted
> tick
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h2 upgrade reboot-required
  + r1 h2: reboot-required
  ! send r1/h2/reboot/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=reboot attempt=1 sequence=10
  ! nothing
# A step of an hour ends nothing while the time is in doubt, and does not count as time in which the host booted.
> clock disputed
> step 3600
> explain h2
  its worker has not answered reboot yet | status=rebooting | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T01:30:00Z
> clock stepped
> trigger r2
  = refused: run r1 is active: `os-upgrade run watch` shows it
> clock trusted
> tick
> wait 29m59s
> clock unmeasured
> wait 1s
> clock trusted
> tick
  + r1 h2: timed-out reason=(boot-timeout after=30m)
  + run-stopping cause=(failed host=h2) run=r1
  + run-ended counts=(timed-out=1 upgraded=1) result=failed run=r1
  ! retract 10 of h2
> explain h2
  it has held a slot of group default since 2026-11-21T01:00:00Z: no reply to reboot within 30m (boot-timeout): it may have hung while booting; `os-upgrade lock release --group=default --id=h2 --reason TEXT` releases it; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,no-run,no-windows
