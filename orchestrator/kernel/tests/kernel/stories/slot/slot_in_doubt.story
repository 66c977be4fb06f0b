# A lock server may carry out a request after its timeout, and so after the unlock that followed. The slot is unlocked once
# more, 30 s later, before it counts as released.
> host h1
> host h2
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
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
> locked h1 timeout
  + slot-refused host=h1 refusal=(unreachable why=timed-out)
  + slot-in-doubt host=h1
> locked h1 timeout
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r1
  + r1 h1: cancelled reason=(run-cancelled actor=admin)
  + slot-release-due host=h1 why=not-needed
  + r1 h2: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=2) result=cancelled run=r1
  = done
  ! unlock h1 of default
> unlocked h1 granted
  + slot-unlocked host=h1
  ! nothing
# Requests that were begun before that was in the journal.
> unlocked h1 granted
> unlocked h1 denied
> unlocked h1 timeout
  + slot-in-doubt host=h1
  ! unlock h1 of default
> unlocked h1 granted
  + slot-unlocked host=h1
  ! nothing
> explain h1
  its slot of group default is being given back: once more at 2026-11-21T01:00:30Z, as the lock server may still carry out an earlier request; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-releasing,no-run,no-windows
> state
  r1 cancelled
  h1 cancelled: the run was cancelled by admin
  h2 cancelled: the run was cancelled by admin
  slot h1: begun=false command=null group=default provider=external run=r1 since=2026-11-21T01:00:00Z standing=(releasing=(why=not-needed)) unlocked-at=2026-11-21T01:00:00Z unsent-at-fence=null
# Only the host whose slot it is waits for that.
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=6
  + r2 h2: command-sent action=prepare attempt=1 sequence=7
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
  + slot-requested group=default host=h2 run=r2
  + r2 h2: waiting reason=(asking-for-slot group=default)
  ! lock h2 of default
> explain h1
  waiting until its earlier slot has been given back: once more at 2026-11-21T01:00:30Z, as the lock server may still carry out an earlier request | status=prepared | since=2026-11-21T01:00:00Z | why=earlier-slot@2026-11-21T05:00:00Z
> wait 29
> tick
> wait 1
> tick
  + slot-release-due host=h1 why=not-needed
  ! lock h2 of default, unlock h1 of default
> explain h1
  waiting until its earlier slot has been given back | status=prepared | since=2026-11-21T01:00:00Z | why=earlier-slot@2026-11-21T05:00:00Z
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! lock h2 of default
# A later grant does not tell what became of the request without an answer, nor does an earlier unlock.
> locked h2 protocol
  + slot-refused host=h2 refusal=(protocol detail="200 with a body of HTML")
  + slot-in-doubt host=h2
> locked h2 granted
  + r2 h2: slot-granted group=default provider=external
  ! send r2/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h2: command-sent action=upgrade attempt=1 sequence=10
  ! nothing
> reply h2 upgrade done
  + r2 h2: upgraded
  + slot-release-due host=h2 why=upgraded
  + slot-requested group=default host=h1 run=r2
  + r2 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default, unlock h2 of default
> unlocked h2 timeout
  + slot-release-refused host=h2 refusal=(unreachable why=timed-out)
> unlocked h2 granted
  + slot-unlocked host=h2
  ! lock h1 of default
> state
  r2 active
  h1 waiting
  h2 upgraded
  slot h1: begun=false command=null group=default provider=external run=r2 since=2026-11-21T01:00:30Z standing=requested unsent-at-fence=null
  slot h2: begun=true command=(action=upgrade sequence=10) group=default held-since=2026-11-21T01:00:30Z provider=external run=r2 since=2026-11-21T01:00:30Z standing=(releasing=(why=upgraded)) unlocked-at=2026-11-21T01:00:30Z unsent-at-fence=null
# The outcome of the second unlock is not known either.
> wait 30
> tick
  + slot-release-due host=h2 why=upgraded
  ! lock h1 of default, unlock h2 of default
> unlocked h2 timeout
  + slot-release-refused host=h2 refusal=(unreachable why=timed-out)
  + slot-in-doubt host=h2
> unlocked h2 granted
  + slot-unlocked host=h2
  ! lock h1 of default
> wait 30
> tick
  + slot-release-due host=h2 why=upgraded
  ! lock h1 of default, unlock h2 of default
> unlocked h2 denied
  + slot-release-refused host=h2 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
> unlocked h2 granted
  + slot-released host=h2 why=upgraded
  ! lock h1 of default
# A new leader does not know what became of the requests of the earlier one.
> leadership-began
  + slot-in-doubt host=h1
> leadership-began
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h1: cancelled reason=(run-cancelled actor=admin)
  + slot-release-due host=h1 why=not-needed
  + run-ended counts=(cancelled=1 upgraded=1) result=cancelled run=r2
  = done
  ! unlock h1 of default
> unlocked h1 granted
  + slot-unlocked host=h1
  ! nothing
> leadership-began
  + slot-in-doubt host=h1
  ! unlock h1 of default
> unlocked h1 granted
  + slot-unlocked host=h1
  ! nothing
# The time counts after the last step of the clock only.
> step 3600
> tick
> wait 29
> clock 31
> wait 1
> tick
> clock trusted
> tick
  + slot-release-due host=h1 why=not-needed
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! nothing
# Nothing was sent: nothing is in doubt.
> trigger r3
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T06:02:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T06:02:00Z, send r3/h2/prepare/1 until 2026-11-21T06:02:00Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=12
  + r3 h2: command-sent action=prepare attempt=1 sequence=13
  ! nothing
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
  + upgrades-began run=r3
  + slot-requested group=default host=h1 run=r3
  + r3 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> locked h1 not-sent
  + slot-refused host=h1 refusal=(unreachable why=(not-sent detail="connection refused"))
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r3
  + r3 h1: cancelled reason=(run-cancelled actor=admin)
  + slot-release-due host=h1 why=not-needed
  + r3 h2: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=2) result=cancelled run=r3
  = done
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! nothing
> state
  r3 cancelled
  h1 cancelled: the run was cancelled by admin
  h2 cancelled: the run was cancelled by admin
# A release that was begun for an earlier slot, and whose outcome is not known, could free the new one.
> trigger r4
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T06:02:00Z rollout=() run=r4 trigger=(operator actor=admin)
  = done
  ! send r4/h1/prepare/1 until 2026-11-21T06:02:00Z, send r4/h2/prepare/1 until 2026-11-21T06:02:00Z
> deliver
  + r4 h1: command-sent action=prepare attempt=1 sequence=16
  + r4 h2: command-sent action=prepare attempt=1 sequence=17
  ! nothing
> reply h1 prepare done
  + r4 h1: prepared
> reply h2 prepare done
  + r4 h2: prepared
  + upgrades-began run=r4
  + slot-requested group=default host=h1 run=r4
  + r4 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> unlocked h1 timeout
  + slot-in-doubt host=h1
  + slot-release-due host=h1 why=not-needed
  + slot-requested group=default host=h2 run=r4
  + r4 h2: waiting reason=(asking-for-slot group=default)
  ! lock h2 of default, unlock h1 of default
> unlocked h1 granted
  + slot-unlocked host=h1
  ! lock h2 of default
> wait 30
> tick
  + slot-release-due host=h1 why=not-needed
  ! lock h2 of default, unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  + slot-requested group=default host=h1 run=r4
  + r4 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default, lock h2 of default
