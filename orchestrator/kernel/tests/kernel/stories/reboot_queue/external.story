# A lock server grants the slots. What is asked for and no longer wanted is given back.
> settings external default:1
  + settings-adopted settings=(auto-approve=true provider=external)
> host h1 boot=a1
> host h2 boot=a2
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1 h2
  + reboots-queued actor=admin hosts=[h1 h2]
  + slot-requested group=default host=h1 run=rq-0-1795222800
  + reboot event=(waiting reason=(asking-for-slot group=default)) host=h1 index=0
  = created
  ! lock h1 of default
> locked h1 denied
  + slot-refused host=h1 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
> locked h1 denied
> queue
  0 h1 queued: denied a slot of group default: semaphore currently full, all slots are locked already (failed_lock_semaphore_full) | slot-denied
  1 h2 queued: entry 0 comes first | behind
> rq disable
  + reboot-queue-switched actor=admin enabled=false
  + slot-release-due host=h1 why=not-needed
  = done
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! nothing
> rq enable
  + reboot-queue-switched actor=admin enabled=true
  + slot-requested group=default host=h1 run=rq-0-1795222800
  + reboot event=(waiting reason=(asking-for-slot group=default)) host=h1 index=0
  = done
  ! lock h1 of default
> locked h1 timeout
  + slot-refused host=h1 refusal=(unreachable why=timed-out)
  + slot-in-doubt host=h1
> clock 40
> clock trusted
> tick
> locked h1 granted
  + reboot event=(started group=default provider=external) host=h1 index=0
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  ! send rq-0-1795222800/h1/reboot/1 to leave a1
> rq cancel 0
  + reboot event=(cancelled actor=admin) host=h1 index=0
  = done
> deliver
  + reboot event=(command-sent attempt=1 sequence=2) host=h1 index=0
  ! nothing
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=0
  + slot-release-due host=h1 why=rebooted
  + slot-requested group=default host=h2 run=rq-1-1795222800
  + reboot event=(waiting reason=(asking-for-slot group=default)) host=h2 index=1
  ! lock h2 of default, unlock h1 of default
> unlocked h1 granted
  + slot-unlocked host=h1
  ! lock h2 of default
> wait 31s
> tick
  + slot-release-due host=h1 why=rebooted
  ! lock h2 of default, unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=rebooted
  ! lock h2 of default
> locked h2 granted
  + reboot event=(started group=default provider=external) host=h2 index=1
  + reboot event=(reboot-began boot-id=a2) host=h2 index=1
  ! send rq-1-1795222800/h2/reboot/1 to leave a2
> deliver
  + reboot event=(command-sent attempt=1 sequence=4) host=h2 index=1
  ! nothing
> leadership-began
> reply h2 reboot done
  + reboot event=rebooted host=h2 index=1
  + slot-release-due host=h2 why=rebooted
  ! unlock h2 of default
> unlocked h2 granted
  + slot-released host=h2 why=rebooted
  ! nothing
> state
# The groups change while the slot is asked for.
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + slot-requested group=default host=h1 run=rq-2-1795222831
  + reboot event=(waiting reason=(asking-for-slot group=default)) host=h1 index=2
  = created
  ! lock h1 of default
> host h1 boot=a1 group=edge
> tick
  + slot-release-due host=h1 why=not-needed
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  + slot-requested group=edge host=h1 run=rq-2-1795222831
  + reboot event=(waiting reason=(asking-for-slot group=edge)) host=h1 index=2
  ! lock h1 of edge
> locked h1 granted
  + reboot event=(started group=edge provider=external) host=h1 index=2
  + reboot event=(reboot-began boot-id=a1) host=h1 index=2
  ! send rq-2-1795222831/h1/reboot/1 to leave a1
> queue
  2 h1 rebooting: its reboot command is about to be sent | command-unsent
> sent h1 reboot run=rq-2-1795222831
  + reboot event=(command-sent attempt=1 sequence=6) host=h1 index=2
  ! nothing
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=2
  + slot-release-due host=h1 why=rebooted
  ! unlock h1 of edge
> unlocked h1 granted
  + slot-released host=h1 why=rebooted
  ! nothing
# While the lock server is asked, the host's worker is replaced by one that does not reboot: the slot is not held for it.
> host h1 boot=a8
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + slot-requested group=default host=h1 run=rq-3-1795222831
  + reboot event=(waiting reason=(asking-for-slot group=default)) host=h1 index=3
  = created
  ! lock h1 of default
> host h1 boot=a8 specification-only
> locked h1 granted
  + slot-release-due host=h1 why=not-needed
  ! unlock h1 of default
> queue
  3 h1 queued: it has no worker, or one that does not reboot it on request | no-worker
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! nothing
> tick
> queue
  3 h1 queued: it has no worker, or one that does not reboot it on request | no-worker
