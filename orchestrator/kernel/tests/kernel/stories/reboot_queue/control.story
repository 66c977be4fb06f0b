# Cancelling, giving up, and workers that answer with an error.
> host h1 boot=a1
> host h2 boot=a2
> host h3 boot=a3
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1 h2 h3
  + reboots-queued actor=admin hosts=[h1 h2 h3]
  + reboot event=(started group=default provider=embedded) host=h1 index=0
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  = created
  ! send rq-0-1795222800/h1/reboot/1 to leave a1
# One that waits is removed; one whose host reboots ends when the host is back, and says so until then.
> rq cancel 1
  + reboot event=(cancelled actor=admin) host=h2 index=1
  + reboot event=removed host=h2 index=1
  = done
> rq cancel 7
  = refused: the reboot queue has no entry 7
> rq cancel 0 why=later
  + reboot event=(cancelled actor=admin reason=later) host=h1 index=0
  = done
> rq cancel 0
  = done
> queue
  0 h1 rebooting, to be cancelled: its reboot command is about to be sent | command-unsent
  2 h3 queued: 1 is under way, as many as may be at once | full
> rq give-up 0
  = refused: the command to h1, or the reply to it, is not known yet: try again in a moment
> deliver
  + reboot event=(command-sent attempt=1 sequence=2) host=h1 index=0
  ! nothing
> rq disable why=heat
  + reboot-queue-switched actor=admin enabled=false reason=heat
  = done
> rq disable
  = done
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
> queue
  2 h3 queued: the queue is disabled | disabled
> rq enable
  + reboot-queue-switched actor=admin enabled=true
  + reboot event=(started group=default provider=embedded) host=h3 index=2
  + reboot event=(reboot-began boot-id=a3) host=h3 index=2
  = done
  ! send rq-2-1795222800/h3/reboot/1 to leave a3
> deliver
  + reboot event=(command-sent attempt=1 sequence=4) host=h3 index=2
  ! nothing
# After an error the host may have rebooted or not. A person looks; the slot stays held.
> reply h3 reboot unhealthy: a unit has failed
  + reboot event=(failed reason=(unhealthy message="a unit has failed")) host=h3 index=2
> queue
  2 h3 rebooting: not healthy after its reboot: a unit has failed; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry | failed
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  = created
> queue
  2 h3 rebooting: not healthy after its reboot: a unit has failed; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry | failed
  3 h1 queued: 1 is under way, as many as may be at once | full
> release default h3 replaced
  = refused: entry 2 of the reboot queue is at work on h3: its slot can be released once the host is back, or the entry was given up
> rq give-up 2
  + reboot event=(given-up actor=admin reason="no power") host=h3 index=2
  = done
> rq give-up 2
  = refused: the reboot queue has no entry 2
> queue
  3 h1 queued: it is denied a slot of group default: the only slot is held by h3 since 2026-11-21T01:00:00Z | slot-denied
> release default h3 replaced
  + slot-released host=h3 why=operator
  + holder-released actor=admin group=default id=h3 reason=replaced
  + reboot event=(started group=default provider=embedded) host=h1 index=3
  + reboot event=(reboot-began boot-id=a1) host=h1 index=3
  = done
  ! send rq-3-1795222800/h1/reboot/1 to leave a1
# A host that never answers is given up: its command is taken back, its slot stays until a late done.
> deliver
  + reboot event=(command-sent attempt=1 sequence=6) host=h1 index=3
  ! nothing
> control-unread
> rq give-up 3
  = refused: the command to h1, or the reply to it, is not known yet: try again in a moment
> control-read
> rq give-up 3
  + reboot event=(given-up actor=admin reason="no power") host=h1 index=3
  = done
  ! retract 6 of h1
> retracted h1 at=11
> queue
  empty
> rq add h2
  + reboots-queued actor=admin hosts=[h2]
  = created
> queue
  4 h2 queued: it is denied a slot of group default: the only slot is held by h1 since 2026-11-21T01:00:00Z | slot-denied
> reply h1 reboot to=11 done
  + ignored host=h1 reply=(action=reboot result=done) sequence=7 why=nothing-outstanding
> state
  slot h1: begun=true command=(action=reboot sequence=6) group=default provider=embedded run=rq-3-1795222800 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> withdraw h2
  + host-withdrawn actor=admin host=h2 reason=moved
  + reboot event=(cancelled actor=admin reason=moved) host=h2 index=4
  + reboot event=removed host=h2 index=4
  = done
> rq cancel-all
  = done
> deliver
> reply h2 reboot done
  + ignored host=h2 reply=(action=reboot result=done) sequence=8 why=nothing-outstanding
> rq add h2
  = refused: h2 is not approved, or was withdrawn; nothing is queued
> withdraw h1
  + host-withdrawn actor=admin host=h1 reason=moved
  = done
> rq add h1 h3
  = refused: h1 is not approved, or was withdrawn; nothing is queued
> rq disable
  + reboot-queue-switched actor=admin enabled=false
  = done
> withdraw h3
  + host-withdrawn actor=admin host=h3 reason=moved
  = done
> rq reset-backoff
  = done
> queue
  empty
