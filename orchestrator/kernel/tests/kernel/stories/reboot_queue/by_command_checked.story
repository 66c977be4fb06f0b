# The operator's second command says whether a host is back, whatever its node reports.
> settings kubernetes default:3 command=2m boot-check
  + settings-adopted settings=(auto-approve=true groups=(default=3) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) command=(checks-boot=true within=2m) max-concurrent=1 unreachable-max=0))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> node h1
> node h2 boot=b1
> rq add h1 h2
  + reboots-queued actor=admin hosts=[h1 h2]
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  = created
  ! check h1 under 1
> cluster h1 drained
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=drained
  + reboot event=(attempt-due node=node-h1) host=h1 index=0
  + reboot event=attempt-began host=h1 index=0
  ! reboot node-h1 by command, attempt 1
> command h1 succeeded
  + reboot event=attempt-succeeded host=h1 index=0
  ! check boot of node-h1 since 2026-11-21T01:00:00Z
> queue
  0 h1 rebooting: the reboot command succeeded at 2026-11-21T01:00:00Z, and the host is not back | boot-awaited
  1 h2 queued: 1 is under way, as many as may be at once | full
> command h1 not-booted
# A check that hangs says nothing.
> command h1 unknown timed out
> command h1 booted
  + reboot event=(booted checked=true) host=h1 index=0
  + node host=h1 step=(uncordon-due release=rebooted)
  ! uncordon ready h1 under 1
> queue
  0 h1 rebooting: its node is being uncordoned since 2026-11-21T01:00:00Z | node-under-way
  1 h2 queued: 1 is under way, as many as may be at once | full
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=1
  ! check h2 under 1
> cluster h2 drained boot=b1
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=(drained boot-id=b1)
  + reboot event=(attempt-due boot-id=b1 node=node-h2) host=h2 index=1
  + reboot event=attempt-began host=h2 index=1
  ! reboot node-h2 by command, attempt 1
> command h2 unknown signal 9
  + reboot event=(attempt-unknown reason=(reboot-unknown detail="signal 9" output=printed)) host=h2 index=1
  ! check boot of node-h2 since 2026-11-21T01:00:00Z
> queue
  1 h2 rebooting: whether the reboot command has had an effect is not known: signal 9; unknown since 2026-11-21T01:00:00Z; it is run again from 2026-11-21T01:32:00Z on if the host is ready in its old boot | retry-awaited
> command h2 booted
  + reboot event=(booted checked=true) host=h2 index=1
  + node host=h2 step=(uncordon-due release=rebooted)
  ! uncordon ready h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + reboot event=rebooted host=h2 index=1
  + slot-released host=h2 why=rebooted
  ! nothing
> queue
  empty
# Its node still reports the boot that was left: that one is not compared, and the node's next report is no reboot.
> rq add h2
  + reboots-queued actor=admin hosts=[h2]
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=2
  = created
  ! check h2 under 1
> cluster h2 drained boot=b1
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=(drained boot-id=b1)
  + reboot event=(attempt-due boot-id=b1 node=node-h2) host=h2 index=2
  + reboot event=attempt-began host=h2 index=2
  ! reboot node-h2 by command, attempt 1
> rq add h2
  + reboots-queued actor=admin hosts=[h2]
  = created
> command h2 succeeded
  + reboot event=attempt-succeeded host=h2 index=2
  ! check boot of node-h2 since 2026-11-21T01:00:00Z
> command h2 booted
  + reboot event=(booted checked=true) host=h2 index=2
  + node host=h2 step=(uncordon-due release=rebooted)
  ! uncordon ready h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + reboot event=rebooted host=h2 index=2
  + slot-released host=h2 why=rebooted
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=3
  ! check h2 under 1
> cluster h2 drained boot=b1
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=(drained boot-id=b1)
  + reboot event=(attempt-due node=node-h2) host=h2 index=3
  + reboot event=attempt-began host=h2 index=3
  ! reboot node-h2 by command, attempt 1
> node h2 boot=b2
> tick
> command h2 succeeded
  + reboot event=attempt-succeeded host=h2 index=3
  ! check boot of node-h2 since 2026-11-21T01:00:00Z
> command h2 booted
  + reboot event=(booted checked=true) host=h2 index=3
  + node host=h2 step=(uncordon-due release=rebooted)
  ! uncordon ready h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + reboot event=rebooted host=h2 index=3
  + slot-released host=h2 why=rebooted
  ! nothing
> queue
  empty
