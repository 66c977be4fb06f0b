# An external lock server: lock requests are repeated until it grants, unlock requests until it confirms.
> host h1
> host h2
> host h3
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
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
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> locked h1 denied
  + slot-refused host=h1 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
> explain h1
  denied a slot of group default: semaphore currently full, all slots are locked already (failed_lock_semaphore_full) | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z | in-run=slot-denied
> locked h1 denied
> locked h1 unreachable
  + slot-refused host=h1 refusal=(unreachable why=(failed detail="connection reset"))
  + slot-in-doubt host=h1
> explain h1
  no slot of group default: the lock server is unreachable: connection reset | status=waiting | since=2026-11-21T01:00:00Z | why=slot-unreachable@2026-11-21T05:00:00Z | in-run=slot-unreachable
> locked h1 protocol
  + slot-refused host=h1 refusal=(protocol detail="200 with a body of HTML")
> explain h1
  no slot of group default: the lock server violated the FleetLock protocol: 200 with a body of HTML | status=waiting | since=2026-11-21T01:00:00Z | why=slot-protocol@2026-11-21T05:00:00Z | in-run=slot-protocol
> explain h2
  waiting for its turn: h1 is first: no slot of group default: the lock server violated the FleetLock protocol: 200 with a body of HTML | status=prepared | since=2026-11-21T01:00:00Z | why=host-first@2026-11-21T05:00:00Z
# Answers without a request.
> locked h2 granted
> locked stranger granted
> unlocked h1 granted
> locked h1 granted
  + r1 h1: slot-granted group=default provider=external
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> locked h1 granted
> unlocked h1 granted
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h1 upgrade reboot-required
  + r1 h1: reboot-required
  ! send r1/h1/reboot/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=reboot attempt=1 sequence=10
  ! nothing
> reply h1 reboot done
  + r1 h1: upgraded
  + slot-release-due host=h1 why=upgraded
  + slot-requested group=default host=h2 run=r1
  + r1 h2: waiting reason=(asking-for-slot group=default)
  ! lock h2 of default, unlock h1 of default
> unlocked h1 unreachable
  + slot-release-refused host=h1 refusal=(unreachable why=(failed detail="connection reset"))
> unlocked h1 denied
  + slot-release-refused host=h1 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
> unlocked h1 protocol
  + slot-release-refused host=h1 refusal=(protocol detail="200 with a body of HTML")
> locked h2 granted
  + r1 h2: slot-granted group=default provider=external
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z, unlock h1 of default
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=12
  ! unlock h1 of default
> unlocked h1 granted
  + slot-unlocked host=h1
  ! nothing
# The lock server may still carry out a request that it did not answer.
> wait 30
> tick
  + slot-release-due host=h1 why=upgraded
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=upgraded
  ! nothing
> reply h2 upgrade kernel panic
  + r1 h2: failed reason=(worker-error action=upgrade message="kernel panic")
  + run-stopping cause=(failed host=h2) run=r1
  + r1 h3: not-reached reason=(run-failed host=h2)
  + run-ended counts=(failed=1 not-reached=1 upgraded=1) result=failed run=r1
# The failed host keeps its slot after the run. In the next run its slot is requested again, after the lock server has
# denied one to the host that is first.
> state
  r1 failed
  h1 upgraded
  h2 failed: upgrade failed: kernel panic
  h3 not-reached: the run was ended by the failure of h2
  slot h2: begun=true command=(action=upgrade sequence=12) failed=true group=default provider=external run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:30Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:30Z, send r2/h2/prepare/1 until 2026-11-21T05:00:30Z, send r2/h3/prepare/1 until 2026-11-21T05:00:30Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=14
  + r2 h2: command-sent action=prepare attempt=1 sequence=15
  + r2 h3: command-sent action=prepare attempt=1 sequence=16
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
  + upgrades-began run=r2
  + slot-requested group=default host=h3 run=r2
  + r2 h3: waiting reason=(asking-for-slot group=default)
  ! lock h3 of default
> locked h3 denied
  + slot-refused host=h3 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
  + r2 h2: waiting reason=(asking-for-slot group=default)
  ! lock h2 of default, lock h3 of default
> locked h2 granted
  + r2 h2: slot-granted group=default provider=external
  ! send r2/h2/upgrade/1 until 2026-11-21T05:00:30Z
> state
  r2 active
  h1 prepared
  h2 upgrading
  h3 waiting
  slot h2: begun=true command=(action=upgrade sequence=12) group=default provider=external run=r2 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
  slot h3: begun=false command=null group=default provider=external refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already") run=r2 since=2026-11-21T01:00:30Z standing=requested unsent-at-fence=null
> deliver
  + r2 h2: command-sent action=upgrade attempt=1 sequence=20
  ! nothing
> reply h2 upgrade done
  + r2 h2: upgraded
  + slot-release-due host=h2 why=upgraded
  ! lock h3 of default, unlock h2 of default
> unlocked h2 granted
  + slot-released host=h2 why=upgraded
  ! lock h3 of default
# The grant arrives after the run was cancelled: the slot is being released already.
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h1: cancelled reason=(run-cancelled actor=admin)
  + r2 h3: cancelled reason=(run-cancelled actor=admin)
  + slot-release-due host=h3 why=not-needed
  + run-ended counts=(cancelled=2 upgraded=1) result=cancelled run=r2
  = done
  ! unlock h3 of default
> locked h3 granted
> unlocked h3 granted
  + slot-released host=h3 why=not-needed
  ! nothing
> unlocked h3 granted
> state
  r2 cancelled
  h1 cancelled: the run was cancelled by admin
  h2 upgraded
  h3 cancelled: the run was cancelled by admin
