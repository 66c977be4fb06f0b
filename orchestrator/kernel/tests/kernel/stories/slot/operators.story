# What operators can do about slots.
> host h1
> host h2
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> settings embedded default:1
> hold default rack-7 a new disk
  + hold-placed actor=admin group=default id=rack-7 reason="a new disk"
  = done
> hold default rack-7 a new disk
  = done
> hold default rack-7 two new disks
  + hold-placed actor=admin group=default id=rack-7 reason="two new disks"
  = done
# Another operator's hold is not overwritten.
> hold default rack-7 by=bob mine
  = refused: rack-7 is held by admin: two new disks; release it first
> hold default rack-8 another disk
  = refused: the only slot is held by rack-7 since 2026-11-21T01:00:00Z
> hold nowhere rack-8 a disk
  = refused: there is no group nowhere
> lock default node-1
  + lock-awaited actor=admin group=default id=node-1
  = refused: the only slot is held by rack-7 since 2026-11-21T01:00:00Z
# A client with that id is the same holder, and its unlock does not end the hold.
> lock default rack-7
  + lock-granted actor=admin group=default id=rack-7
  = done
> unlock default rack-7
  + lock-released actor=admin group=default id=rack-7
  = done
> release default rack-7 the disk is in
  + holder-released actor=admin group=default id=rack-7 reason="the disk is in"
  = done
> release default rack-7 twice
  = refused: rack-7 neither holds a slot of group default nor waits for one
> release nowhere rack-7 why not
  = refused: there is no group nowhere
# A waiter that will not retry can be removed.
> lock default node-1
  + lock-granted actor=admin group=default id=node-1
  = done
> hold default rack-9 full
  = refused: the only slot is held by node-1 since 2026-11-21T01:00:00Z
> lock default node-2
  + lock-awaited actor=admin group=default id=node-2
  = refused: the only slot is held by node-1 since 2026-11-21T01:00:00Z
> release default node-2 it is switched off
  + holder-released actor=admin group=default id=node-2 reason="it is switched off"
  = done
> release default node-2 it is switched off
  = refused: node-2 neither holds a slot of group default nor waits for one
> release default rack-9 free
  = refused: rack-9 neither holds a slot of group default nor waits for one
# The slot of a host at work is not released; that of a failed host is.
> unlock default node-1
  + lock-released actor=admin group=default id=node-1
  = done
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
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> release default h1 too slow
  = refused: h1 is upgrading in run r1: its slot can be released once the host has finished or the run has ended
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> release default h1 too slow
  = refused: h1 is upgrading in run r1: its slot can be released once the host has finished or the run has ended
> reply h1 upgrade no
  + r1 h1: failed reason=(worker-error action=upgrade message=no)
  + run-stopping cause=(failed host=h1) run=r1
  + r1 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r1
> release edge h1 wrong group
  = refused: there is no group edge
> release default h1 it burnt
  + slot-released host=h1 why=operator
  + holder-released actor=admin group=default id=h1 reason="it burnt"
  = done
> state
  r1 failed
  h1 failed: upgrade failed: no
  h2 not-reached: the run was ended by the failure of h1
# A holder that has left the inventory loses its slot only if the settings allow it.
> lock default h2
  + lock-granted actor=admin group=default id=h2
  = done
> reclaim default h2
  = refused: slots of holders that have left the inventory are not reclaimed: set [fleet-lock] reclaim = "inventory", or release the slot with a reason
> settings embedded default:1 reclaim
  + settings-adopted settings=(auto-approve=true reclaim=inventory)
> reclaim default h2
  = refused: h2 is in the inventory: its workers have announced themselves on debian
> gone h2
> reclaim default h2
  + holder-released actor=admin group=default id=h2
  = done
> reclaim default h2
  = refused: h2 neither holds a slot of group default nor waits for one
# A holder that was never in the inventory has not left it, and an operator's hold stays.
> lock default node-9
  + lock-granted actor=admin group=default id=node-9
  = done
> reclaim default node-9
  = refused: node-9 has not left the inventory: it was never in it, or an operator holds its slot; release it with a reason
> unlock default node-9
  + lock-released actor=admin group=default id=node-9
  = done
> hold default h2 to be looked at
  + hold-placed actor=admin group=default id=h2 reason="to be looked at"
  = done
> reclaim default h2
  = refused: h2 has not left the inventory: it was never in it, or an operator holds its slot; release it with a reason
> release default h2 looked at
  + holder-released actor=admin group=default id=h2 reason="looked at"
  = done
# A command may still be delivered: the slot is released only once it is known that it is not.
> host h2
> trigger r0 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T02:00:00Z rollout=() run=r0 trigger=(operator actor=admin)
  = done
  ! send r0/h1/prepare/1 until 2026-11-21T02:00:00Z, send r0/h2/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r0 h1: command-sent action=prepare attempt=1 sequence=8
  + r0 h2: command-sent action=prepare attempt=1 sequence=9
  ! nothing
> reply h1 prepare done
  + r0 h1: prepared
> reply h2 prepare done
  + r0 h2: prepared
  + upgrades-began run=r0
  + r0 h2: slot-granted group=default provider=embedded
  ! send r0/h2/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r0 h2: command-sent action=upgrade attempt=1 sequence=12
  ! nothing
> wait 3600
> tick
  + r0 h1: not-reached reason=(run-timed-out waited-for=(host-under-way host=h2))
  + r0 h2: timed-out reason=(no-reply action=upgrade)
  + run-ended counts=(not-reached=1 timed-out=1) result=timed-out run=r0
  ! retract 12 of h2
> release default h2 it is gone
  = refused: a command to h2 may still be on its way: try again in a moment
> retracted h2 at=12
  + command-retracted deleted=false host=h2 sequence=12
  ! nothing
> release default h2 it is gone
  + slot-released host=h2 why=operator
  + holder-released actor=admin group=default id=h2 reason="it is gone"
  = done
# With an external lock server the host's slot is released there.
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
> hold default rack-7 a disk
  = refused: the slots of this site are granted by another lock server: ask that one
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T06:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T06:00:00Z, send r2/h2/prepare/1 until 2026-11-21T06:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=13
  + r2 h2: command-sent action=prepare attempt=1 sequence=14
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
  + slot-requested group=default host=h1 run=r2
  + r2 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> locked h1 granted
  + r2 h1: slot-granted group=default provider=external
  ! send r2/h1/upgrade/1 until 2026-11-21T06:00:00Z
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=17
  ! nothing
> reply h1 upgrade no
  + r2 h1: failed reason=(worker-error action=upgrade message=no)
  + run-stopping cause=(failed host=h1) run=r2
  + r2 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r2
> release default h1 it burnt again
  + slot-release-due host=h1 why=operator
  + holder-released actor=admin group=default id=h1 reason="it burnt again"
  = done
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=operator
  ! nothing
> release default h1 once more
  = refused: there is no group default
