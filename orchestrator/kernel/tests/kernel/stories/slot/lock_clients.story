# External clients share a group's slots with the hosts of a run.
> host h1
> host h2
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> settings embedded default:1 edge:2
  + settings-adopted settings=(auto-approve=true groups=(default=1 edge=2))
> lock default node-7
  + lock-granted actor=admin group=default id=node-7
  = done
# Again, with the same id: it is granted again, without a new fact.
> lock default node-7
  = done
> lock default node-8
  + lock-awaited actor=admin group=default id=node-8
  = refused: the only slot is held by node-7 since 2026-11-21T01:00:00Z
> unlock default node-8
  + lock-wait-ended actor=admin group=default id=node-8
  = done
> lock nowhere node-8
  = refused: there is no group nowhere
> unlock nowhere node-8
  = refused: there is no group nowhere
> lock edge node-8
  + lock-granted actor=admin group=edge id=node-8
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
  + r1 h1: waiting reason=(slot-denied denial=(full held=1 holders=[(id=node-7 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
> explain h1
  denied a slot of group default: the only slot is held by node-7 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full) | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z | in-run=slot-denied
# The slot that the client releases goes to the host that waits.
> unlock default node-7
  + lock-released actor=admin group=default id=node-7
  + r1 h1: slot-granted group=default provider=embedded
  = done
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> unlock default node-7
  = done
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> lock default node-7
  + lock-awaited actor=admin group=default id=node-7
  = refused: the only slot is held by h1 since 2026-11-21T01:00:00Z
# The host's own agent locks under the host's name: the same holder. Its unlock does not release the run's slot.
> unlock default h1
  = done
> lock default h1
  + lock-granted actor=admin group=default id=h1
  = done
> state
  r1 active
  h1 upgrading
  h2 prepared
  slot h1: begun=true command=(action=upgrade sequence=6) group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> unlock default h1
  + lock-released actor=admin group=default id=h1
  = done
> lock default h1
  + lock-granted actor=admin group=default id=h1
  = done
> lock default node-7
  = refused: the only slot is held by h1 since 2026-11-21T01:00:00Z
# The run has finished h1 and its agent still holds the slot: h2 waits for it.
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h2: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h1 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
> lock default node-7
  = refused: the only slot is held by h1 since 2026-11-21T01:00:00Z
> explain h2
  denied a slot of group default: the only slot is held by h1 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full) | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z | in-run=slot-denied
# The other client no longer wants a slot.
> unlock default node-7
  + lock-wait-ended actor=admin group=default id=node-7
  = done
> unlock default h1
  + lock-released actor=admin group=default id=h1
  + r1 h2: slot-granted group=default provider=embedded
  = done
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
# The group is removed: holders keep their slots, nobody gets a new one.
> settings embedded default:1
  + settings-adopted settings=(auto-approve=true)
> lock edge node-9
  + lock-awaited actor=admin group=edge id=node-9
  = refused: the group has no slots any more; still held by node-8 since 2026-11-21T01:00:00Z
> lock edge node-8
  = done
> unlock edge node-8
  + lock-released actor=admin group=edge id=node-8
  = done
# With an external lock server no slot is granted here, and held slots can be released.
> lock default node-7
  + lock-awaited actor=admin group=default id=node-7
  = refused: the only slot is held by h2 since 2026-11-21T01:00:00Z
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r1
> lock default node-7
  + lock-granted actor=admin group=default id=node-7
  = done
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
> lock default node-7
  = refused: the slots of this site are granted by another lock server: ask that one
> lock default node-9
  = refused: the slots of this site are granted by another lock server: ask that one
> unlock default node-7
  + lock-released actor=admin group=default id=node-7
  = done
> unlock default node-9
  = refused: there is no group default
