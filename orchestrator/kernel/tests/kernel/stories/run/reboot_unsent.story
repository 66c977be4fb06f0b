# The time is over after `reboot-required` and before the reboot was sent: it may be on its way, and the slot is held.
> host h1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T02:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=4
  ! nothing
> reply h1 upgrade reboot-required
  + r1 h1: reboot-required
  ! send r1/h1/reboot/1 until 2026-11-21T02:00:00Z
> wait 3600
> tick
  + r1 h1: timed-out reason=(not-sent action=reboot)
  + run-ended counts=(timed-out=1) result=timed-out run=r1
  ! new fence above 1
> fence
  + fenced leader=one sequence=6
  + fence-passed sequence=6
  ! nothing
> sent h1 reboot run=r1
  + late-command-seen action=reboot host=h1 sequence=7
  ! retract 7 of h1
> reply h1 upgrade to=4 done
  + ignored host=h1 reply=(action=upgrade result=done) sequence=8 why=nothing-outstanding
> reply h1 reboot to=7 done
  + slot-released host=h1 why=late-done
# The same with `on-failure = release`: once it is certain that no reboot will be sent, the slot is free.
> settings embedded release default:1
  + settings-adopted settings=(auto-approve=true on-failure=release)
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T03:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T03:00:00Z, retract 7 of h1
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=10
  ! retract 7 of h1
> reply h1 prepare done
  + r2 h1: prepared
  + upgrades-began run=r2
  + r2 h1: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T03:00:00Z, retract 7 of h1
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=12
  ! retract 7 of h1
> reply h1 upgrade reboot-required
  + r2 h1: reboot-required
  ! send r2/h1/reboot/1 until 2026-11-21T03:00:00Z, retract 7 of h1
> wait 3600
> tick
  + r2 h1: timed-out reason=(not-sent action=reboot)
  + run-ended counts=(timed-out=1) result=timed-out run=r2
  ! new fence above 6, retract 7 of h1
> fence
  + fenced leader=one sequence=14
  + fence-passed sequence=14
  + slot-released host=h1 why=failed
  ! retract 7 of h1
> state
  r2 timed-out
  h1 timed-out: reboot could not be sent before not-after
