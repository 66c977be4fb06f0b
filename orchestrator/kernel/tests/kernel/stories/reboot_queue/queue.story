# Hosts reboot one after the other, each with its slot. Nothing of a run is needed.
> host h1 boot=a1
> host h2 boot=a2
> host h3
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add
  = refused: no host is named
> rq add h1 h1
  = refused: h1 is named twice; nothing is queued
> rq add h1 h9
  = refused: h9 has announced no worker at this site; nothing is queued
> rq add h1 h3
  = refused: h3 has no worker, or one that does not reboot it on request; nothing is queued
> rq add h1 h2 validate
  = valid
> rq add h1 h2 why=kernel
  + reboots-queued actor=admin hosts=[h1 h2] reason=kernel
  + reboot event=(started group=default provider=embedded) host=h1 index=0
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  = created
  ! send rq-0-1795222800/h1/reboot/1 to leave a1
> rq add h2
  = refused: h2 waits already, as entry 1; nothing is queued
> queue
  0 h1 rebooting: its reboot command is about to be sent | command-unsent
  1 h2 queued: 1 is under way, as many as may be at once | full
> give-up h1
  = refused: no run is active
> release default h1 burnt
  = refused: entry 0 of the reboot queue is at work on h1: its slot can be released once the host is back, or the entry was given up
> deliver
  + reboot event=(command-sent attempt=1 sequence=2) host=h1 index=0
  ! nothing
> queue
  0 h1 rebooting: its worker has not answered reboot since 2026-11-21T01:00:00Z | reply-awaited
  1 h2 queued: 1 is under way, as many as may be at once | full
> explain h1
  entry 0 of the reboot queue is rebooting; nothing is configured | why=reboot-under-way,no-configuration
# The same command once more, as a worker of an old version or a second sender would: it is nobody's.
> sent h1 reboot run=rq-0-1
  + ignored host=h1 reply=null sequence=3 why=foreign-command
> reply h1 reboot to=3 done
  + ignored host=h1 reply=(action=reboot result=done) sequence=4 why=nothing-outstanding
> reply h1 reboot to=2 done
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
  + reboot event=(started group=default provider=embedded) host=h2 index=1
  + reboot event=(reboot-began boot-id=a2) host=h2 index=1
  ! send rq-1-1795222800/h2/reboot/1 to leave a2
> queue
  1 h2 rebooting: its reboot command is about to be sent | command-unsent
# The worker of the second host has another boot by now: it had rebooted by itself, and says done at once.
> deliver
  + reboot event=(command-sent attempt=1 sequence=6) host=h2 index=1
  ! nothing
> host h2 boot=b2
> reply h2 reboot to=6 done
  + reboot event=rebooted host=h2 index=1
  + slot-released host=h2 why=rebooted
> queue
  empty
> state
# A host may be queued again, and its command has another id.
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started group=default provider=embedded) host=h1 index=2
  + reboot event=(reboot-began boot-id=a1) host=h1 index=2
  = created
  ! send rq-2-1795222800/h1/reboot/1 to leave a1
> wait 1h
> deliver
  + reboot event=(command-sent attempt=1 sequence=8) host=h1 index=2
  ! nothing
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  = created
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=2
  + slot-released host=h1 why=rebooted
> state
# Its second entry waits until the worker has announced the new boot.
> queue
  3 h1 queued: its boot after the last reboot has not been seen yet | boot-unknown
> host h1 boot=b1
> tick
  + reboot event=(started group=default provider=embedded) host=h1 index=3
  + reboot event=(reboot-began boot-id=b1) host=h1 index=3
  ! send rq-3-1795226400/h1/reboot/1 to leave b1
> deliver
  + reboot event=(command-sent attempt=1 sequence=10) host=h1 index=3
  ! nothing
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=3
  + slot-released host=h1 why=rebooted
> queue
  empty
