# While commands are about to be sent, and one has been.
> host h1
> host h2
> host h3
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> sent h1 prepare
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> cancel by=eve
  + run-stopping cause=(cancelled actor=eve) run=r1
  + r1 h1: cancelled reason=(run-cancelled actor=eve)
  + r1 h2: cancelled reason=(run-cancelled actor=eve)
  + r1 h3: cancelled reason=(run-cancelled actor=eve)
  + run-ended counts=(cancelled=3) result=cancelled run=r1
  = done
  ~ hint h1: r1 cancelled
  ! retract 2 of h1
> cancel
  = refused: no run is active
> state
  r1 cancelled
  h1 cancelled: the run was cancelled by eve
  h2 cancelled: the run was cancelled by eve
  h3 cancelled: the run was cancelled by eve
> sent h2 prepare run=r1
  + late-command-seen action=prepare host=h2 sequence=3
  ! retract 2 of h1, retract 3 of h2
> retracted h1 at=2 given
  + command-retracted deleted=false host=h1 sequence=2
  ! retract 3 of h2
> retracted h2 at=3 deleted
  + command-retracted deleted=true host=h2 sequence=3
  ! nothing
# While a host is under way: it is finished, including the reboot.
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z, send r2/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=4
  + r2 h2: command-sent action=prepare attempt=1 sequence=5
  + r2 h3: command-sent action=prepare attempt=1 sequence=6
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
  + upgrades-began run=r2
  + r2 h1: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T05:00:00Z
> cancel by=eve
  + run-stopping cause=(cancelled actor=eve) run=r2
  + r2 h2: cancelled reason=(run-cancelled actor=eve)
  + r2 h3: cancelled reason=(run-cancelled actor=eve)
  = done
> cancel by=eve
  = done
> explain h1
  its upgrade command is about to be sent | status=upgrading | since=2026-11-21T01:00:00Z | why=command-unsent@2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=10
  ! nothing
> reply h1 upgrade reboot-required
  + r2 h1: reboot-required
  ! send r2/h1/reboot/1 until 2026-11-21T05:00:00Z
> trigger r3
  = refused: run r2 is active: `os-upgrade run watch` shows it
> deliver
  + r2 h1: command-sent action=reboot attempt=1 sequence=12
  ! nothing
> reply h1 reboot done
  + r2 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(cancelled=2 upgraded=1) result=cancelled run=r2
> state
  r2 cancelled
  h1 upgraded
  h2 cancelled: the run was cancelled by eve
  h3 cancelled: the run was cancelled by eve
# While a host waits for its slot.
> settings embedded default:0
  + settings-adopted settings=(auto-approve=true groups=(default=0))
> trigger r3
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T05:00:00Z, send r3/h2/prepare/1 until 2026-11-21T05:00:00Z, send r3/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=14
  + r3 h2: command-sent action=prepare attempt=1 sequence=15
  + r3 h3: command-sent action=prepare attempt=1 sequence=16
  ! nothing
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
> reply h3 prepare done
  + r3 h3: prepared
  + upgrades-began run=r3
  + r3 h2: waiting reason=(slot-denied denial=(full held=0 holders=[] provider=embedded slots=0) group=default)
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r3
  + r3 h1: cancelled reason=(run-cancelled actor=admin)
  + r3 h2: cancelled reason=(run-cancelled actor=admin)
  + r3 h3: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=3) result=cancelled run=r3
  = done
> state
  r3 cancelled
  h1 cancelled: the run was cancelled by admin
  h2 cancelled: the run was cancelled by admin
  h3 cancelled: the run was cancelled by admin
# A host fails while the run is being cancelled: the run stays cancelled.
> settings embedded default:1
  + settings-adopted settings=(auto-approve=true)
> trigger r4
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r4 trigger=(operator actor=admin)
  = done
  ! send r4/h1/prepare/1 until 2026-11-21T05:00:00Z, send r4/h2/prepare/1 until 2026-11-21T05:00:00Z, send r4/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r4 h1: command-sent action=prepare attempt=1 sequence=20
  + r4 h2: command-sent action=prepare attempt=1 sequence=21
  + r4 h3: command-sent action=prepare attempt=1 sequence=22
  ! nothing
> reply h1 prepare done
  + r4 h1: prepared
> reply h2 prepare done
  + r4 h2: prepared
> reply h3 prepare done
  + r4 h3: prepared
  + upgrades-began run=r4
  + r4 h2: slot-granted group=default provider=embedded
  ! send r4/h2/upgrade/1 until 2026-11-21T05:00:00Z
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r4
  + r4 h1: cancelled reason=(run-cancelled actor=admin)
  + r4 h3: cancelled reason=(run-cancelled actor=admin)
  = done
> deliver
  + r4 h2: command-sent action=upgrade attempt=1 sequence=26
  ! nothing
> reply h2 upgrade oops
  + r4 h2: failed reason=(worker-error action=upgrade message=oops)
  + run-ended counts=(cancelled=2 failed=1) result=cancelled run=r4
> state
  r4 cancelled
  h1 cancelled: the run was cancelled by admin
  h2 failed: upgrade failed: oops
  h3 cancelled: the run was cancelled by admin
  slot h2: begun=true command=(action=upgrade sequence=26) failed=true group=default provider=embedded run=r4 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
