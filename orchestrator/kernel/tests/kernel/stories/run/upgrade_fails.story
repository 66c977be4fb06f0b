# An upgrade fails: its slot is held, the others are cancelled.
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
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=10
  ! nothing
> wait 60
> reply h2 upgrade dpkg was interrupted
  + r1 h2: failed reason=(worker-error action=upgrade message="dpkg was interrupted")
  + run-stopping cause=(failed host=h2) run=r1
  + r1 h3: not-reached reason=(run-failed host=h2)
  + run-ended counts=(failed=1 not-reached=1 upgraded=1) result=failed run=r1
> state
  r1 failed
  h1 upgraded
  h2 failed: upgrade failed: dpkg was interrupted
  h3 not-reached: the run was ended by the failure of h2
  slot h2: begun=true command=(action=upgrade sequence=10) failed=true group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> explain h2
  it has held a slot of group default since 2026-11-21T01:00:00Z: upgrade failed: dpkg was interrupted; `os-upgrade lock release --group=default --id=h2 --reason TEXT` releases it; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,no-run,no-windows
# The same error again, or a reboot after it, changes nothing; another host waits for the slot, with the reason.
> reply h2 upgrade dpkg was interrupted
  + ignored host=h2 reply=(action=upgrade result=error) sequence=12 why=already-answered
> reply h2 upgrade reboot-required
> gone h2
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h3)] not-after=2026-11-21T05:01:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:01:00Z, send r2/h3/prepare/1 until 2026-11-21T05:01:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=14
  + r2 h3: command-sent action=prepare attempt=1 sequence=15
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h3 prepare done
  + r2 h3: prepared
  + upgrades-began run=r2
  + r2 h3: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h2 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
> explain h3
  denied a slot of group default: the only slot is held by h2 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full); h2: upgrade failed: dpkg was interrupted | status=waiting | since=2026-11-21T01:01:00Z | why=slot-denied@2026-11-21T05:01:00Z,slot-stuck | in-run=slot-denied
> explain h1
  waiting for its turn: h3 is first: denied a slot of group default: the only slot is held by h2 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full); h2: upgrade failed: dpkg was interrupted | status=prepared | since=2026-11-21T01:01:00Z | why=host-first@2026-11-21T05:01:00Z,slot-stuck
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h1: cancelled reason=(run-cancelled actor=admin)
  + r2 h3: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=2) result=cancelled run=r2
  = done
# When the host is back, it goes first, because its group has no free slot; its success releases the slot.
> host h2
> trigger r3
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:01:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T05:01:00Z, send r3/h2/prepare/1 until 2026-11-21T05:01:00Z, send r3/h3/prepare/1 until 2026-11-21T05:01:00Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=18
  + r3 h2: command-sent action=prepare attempt=1 sequence=19
  + r3 h3: command-sent action=prepare attempt=1 sequence=20
  ! nothing
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
> reply h3 prepare done
  + r3 h3: prepared
  + upgrades-began run=r3
  + r3 h2: slot-granted group=default provider=embedded
  ! send r3/h2/upgrade/1 until 2026-11-21T05:01:00Z
> deliver
  + r3 h2: command-sent action=upgrade attempt=1 sequence=24
  ! nothing
> reply h2 upgrade done
  + r3 h2: upgraded
  + slot-released host=h2 why=upgraded
  + r3 h3: slot-granted group=default provider=embedded
  ! send r3/h3/upgrade/1 until 2026-11-21T05:01:00Z
> deliver
  + r3 h3: command-sent action=upgrade attempt=1 sequence=26
  ! nothing
> reply h3 upgrade done
  + r3 h3: upgraded
  + slot-released host=h3 why=upgraded
  + r3 h1: slot-granted group=default provider=embedded
  ! send r3/h1/upgrade/1 until 2026-11-21T05:01:00Z
> deliver
  + r3 h1: command-sent action=upgrade attempt=1 sequence=28
  ! nothing
> reply h1 upgrade done
  + r3 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(upgraded=3) result=completed run=r3
> state
  r3 completed
  h1 upgraded
  h2 upgraded
  h3 upgraded
