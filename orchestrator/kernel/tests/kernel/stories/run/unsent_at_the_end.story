# not-after passes while it is unknown whether an upgrade was sent: a new fence shows it.
> host h1
> host h2
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T02:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z
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
  ! send r1/h1/upgrade/1 until 2026-11-21T02:00:00Z
> wait 3600
> tick
  + r1 h1: timed-out reason=(not-sent action=upgrade)
  + r1 h2: not-reached reason=(run-timed-out waited-for=(host-under-way host=h1))
  + run-ended counts=(not-reached=1 timed-out=1) result=timed-out run=r1
  ! new fence above 1
> state
  r1 timed-out
  h1 timed-out: upgrade could not be sent before not-after
  h2 not-reached: the run timed out before its turn: h1 was under way
  slot h1: begun=false command=null group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=1
# In the meantime the next run starts. The host gets no command again before it is certain that the first upgrade is not
# on its way, and the next host of its group is denied the slot.
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T06:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T06:00:00Z, send r2/h2/prepare/1 until 2026-11-21T06:00:00Z, new fence above 1
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=6
  + r2 h2: command-sent action=prepare attempt=1 sequence=7
  ! new fence above 1
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
  + r2 h2: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h1 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
> explain h1
  waiting until it is certain that its earlier command can no longer appear | status=prepared | since=2026-11-21T02:00:00Z | why=earlier-command@2026-11-21T06:00:00Z
> explain h2
  denied a slot of group default: the only slot is held by h1 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full); h1: upgrade could not be sent before not-after | status=waiting | since=2026-11-21T02:00:00Z | why=slot-denied@2026-11-21T06:00:00Z,slot-stuck | in-run=slot-denied
> fence-stored one at=9
  + fenced leader=one sequence=9
  + fence-passed sequence=9
  + r2 h1: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T06:00:00Z
> unknown some.subject
  + ignored host=null reply=null sequence=10 why=(unknown-subject subject=some.subject)
> leader at=9
> state
  r2 active
  h1 upgrading
  h2 waiting
  slot h1: begun=false command=null group=default provider=embedded run=r2 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
# No command decided before the fence is sent; the commands sent now end the story.
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=11
  ! nothing
> reply h1 upgrade done
  + r2 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r2 h2: slot-granted group=default provider=embedded
  ! send r2/h2/upgrade/1 until 2026-11-21T06:00:00Z
> deliver
  + r2 h2: command-sent action=upgrade attempt=1 sequence=13
  ! nothing
> reply h2 upgrade done
  + r2 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r2
