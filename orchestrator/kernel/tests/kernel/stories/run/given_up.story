# An operator gives up a host that will not answer, long before the run's end.
> host h1
> host h2
> host h3
> host h4
> put-config debian rollout/max-failures=0
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> give-up h1
  = refused: no run is active
> trigger r1 timeout=2h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T03:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T03:00:00Z, send r1/h2/prepare/1 until 2026-11-21T03:00:00Z, send r1/h3/prepare/1 until 2026-11-21T03:00:00Z, send r1/h4/prepare/1 until 2026-11-21T03:00:00Z
> give-up h9
  = refused: h9 is not in the active run r1
# A host whose command has not been seen has not begun.
> give-up h4 validate
  = valid
> give-up h4 why=unplugged
  + r1 h4: cancelled reason=(given-up actor=admin reason=unplugged)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T03:00:00Z, send r1/h2/prepare/1 until 2026-11-21T03:00:00Z, send r1/h3/prepare/1 until 2026-11-21T03:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
# A host that does not answer prepare keeps all others from their upgrades.
> give-up h3
  + r1 h3: cancelled reason=(given-up actor=admin reason="no power")
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  = done
  ! send r1/h1/upgrade/1 until 2026-11-21T03:00:00Z
> explain h3
  given up by admin: no power | status=cancelled | since=2026-11-21T01:00:00Z | why=given-up | in-run=given-up
# Its reply arrives too late.
> reply h3 prepare done
  + ignored host=h3 reply=(action=prepare result=done) sequence=7 why=nothing-outstanding
# Giving it up again changes nothing; hosts with another final status keep that.
> give-up h3 by=eve
  = done
> explain h3
  given up by admin: no power | status=cancelled | since=2026-11-21T01:00:00Z | why=given-up | in-run=given-up
# A host that holds a slot can be given up once its last command is known and its reply would have been read.
> give-up h1
  = refused: the last command to h1, or the reply to it, is not known yet: try again in a moment
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> control-unread
> give-up h1
  = refused: the last command to h1, or the reply to it, is not known yet: try again in a moment
> control-read
> give-up h1 validate
  = valid
> give-up h1 by=anna why=burnt
  + r1 h1: timed-out reason=(given-up actor=anna reason=burnt)
  + r1 h2: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h1 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
  = done
  ! retract 8 of h1
> explain h1
  given up by anna: burnt | status=timed-out | since=2026-11-21T01:00:00Z | why=given-up | in-run=given-up
> explain h2
  denied a slot of group default: the only slot is held by h1 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full); h1: given up by anna: burnt | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T03:00:00Z,slot-stuck | in-run=slot-denied
# Its command is retracted, and the run continues: giving up is no failure that stops it. The operator releases the slot.
> release default h1 burnt
  = refused: a command to h1 may still be on its way: try again in a moment
> retracted h1 at=8 deleted
  + command-retracted deleted=true host=h1 sequence=8
  ! nothing
> release default h1 burnt
  + slot-released host=h1 why=operator
  + holder-released actor=admin group=default id=h1 reason=burnt
  + r1 h2: slot-granted group=default provider=embedded
  = done
  ! send r1/h2/upgrade/1 until 2026-11-21T03:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=9
  ! nothing
> reply h2 upgrade reboot-required
  + r1 h2: reboot-required
  ! send r1/h2/reboot/1 until 2026-11-21T03:00:00Z
> deliver
  + r1 h2: command-sent action=reboot attempt=1 sequence=11
  ! nothing
# The last one that the run waits for.
> give-up h2 why=hangs
  + r1 h2: timed-out reason=(given-up actor=admin reason=hangs)
  + run-ended counts=(given-up=4) result=failed run=r1
  = done
  ! retract 4 of h3, retract 11 of h2
> state
  r1 failed
  h1 timed-out: given up by anna: burnt
  h2 timed-out: given up by admin: hangs
  h3 cancelled: given up by admin: no power
  h4 cancelled: given up by admin: unplugged
  slot h2: begun=true command=(action=reboot sequence=11) group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> give-up h2
  = done
> give-up h2 validate
  = valid
> give-up h9
  = refused: no run is active
# Its late `done` releases its slot.
> reply h2 reboot done
  + slot-released host=h2 why=late-done
  + ignored host=h2 reply=(action=reboot result=done) sequence=12 why=(too-late run=r1)
# Its slot stays held also with `on-failure = release`: the run continues, and the host may still be at work.
> put-config debian rollout/max-failures=1
  + config-replaced actor=admin config=(rollout=(max-failures=1) worker-applications=[(name=debian)]) difference=[(after=(max-failures=1) path=rollout)]
  = done
> settings embedded release default:1
  + settings-adopted settings=(auto-approve=true on-failure=release)
> trigger r2 timeout=2h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T03:00:00Z rollout=(max-failures=1) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T03:00:00Z, send r2/h2/prepare/1 until 2026-11-21T03:00:00Z, send r2/h3/prepare/1 until 2026-11-21T03:00:00Z, send r2/h4/prepare/1 until 2026-11-21T03:00:00Z, retract 4 of h3, retract 11 of h2
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=13
  + r2 h2: command-sent action=prepare attempt=1 sequence=14
  + r2 h3: command-sent action=prepare attempt=1 sequence=15
  + r2 h4: command-sent action=prepare attempt=1 sequence=16
  ! retract 4 of h3, retract 11 of h2
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
> reply h4 prepare done
  + r2 h4: prepared
  + upgrades-began run=r2
  + r2 h3: slot-granted group=default provider=embedded
  ! send r2/h3/upgrade/1 until 2026-11-21T03:00:00Z, retract 4 of h3, retract 11 of h2
> deliver
  + r2 h3: command-sent action=upgrade attempt=1 sequence=21
  ! retract 4 of h3, retract 11 of h2
> give-up h3
  + r2 h3: timed-out reason=(given-up actor=admin reason="no power")
  + r2 h4: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h3 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
  = done
  ! retract 4 of h3, retract 11 of h2, retract 21 of h3
> retracted h3 at=21 given
  + command-retracted deleted=false host=h3 sequence=21
  ! retract 4 of h3, retract 11 of h2
> state
  r2 active
  h1 prepared
  h2 prepared
  h3 timed-out: given up by admin: no power
  h4 waiting
  slot h3: begun=true command=(action=upgrade sequence=21) group=default provider=embedded run=r2 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> release default h3 burnt
  = refused: a command to h3 may still be on its way: try again in a moment
# Its earlier prepare may be on its way, too.
> retracted h3 at=4 deleted
  + command-retracted deleted=true host=h3 sequence=4
  ! retract 11 of h2
> release default h3 burnt
  + slot-released host=h3 why=operator
  + holder-released actor=admin group=default id=h3 reason=burnt
  + r2 h4: slot-granted group=default provider=embedded
  = done
  ! send r2/h4/upgrade/1 until 2026-11-21T03:00:00Z, retract 11 of h2
> deliver
  + r2 h4: command-sent action=upgrade attempt=1 sequence=22
  ! retract 11 of h2
# Hosts that were given up count as failures when another host fails: here that is one too many.
> reply h4 upgrade oops
  + r2 h4: failed reason=(worker-error action=upgrade message=oops)
  + run-stopping cause=(failed host=h4) run=r2
  + slot-released host=h4 why=failed
  + r2 h1: not-reached reason=(run-failed host=h4)
  + r2 h2: not-reached reason=(run-failed host=h4)
  + run-ended counts=(failed=1 given-up=1 not-reached=2) result=failed run=r2
> state
  r2 failed
  h1 not-reached: the run was ended by the failure of h4
  h2 not-reached: the run was ended by the failure of h4
  h3 timed-out: given up by admin: no power
  h4 failed: upgrade failed: oops
