# The node has just booted, and what the leader has seen of it is older: that boot is not taken for the one by the command.
> settings kubernetes default:3 command=2m
  + settings-adopted settings=(auto-approve=true groups=(default=3) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) command=(within=2m) max-concurrent=1 unreachable-max=0))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> node h1 boot=a1
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  = created
  ! check h1 under 1
> cluster h1 drained boot=a2
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  ! check cordoned h1 under 1
> queue
  0 h1 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
> node h1 boot=a2
> nodes-seen
> cluster h1 drained boot=a2
  + node host=h1 step=(drained boot-id=a2)
  + reboot event=(attempt-due boot-id=a2 node=node-h1) host=h1 index=0
  + reboot event=attempt-began host=h1 index=0
  ! reboot node-h1 by command, attempt 1
> command h1 succeeded
  + reboot event=attempt-succeeded host=h1 index=0
  ! nothing
> tick
> queue
  0 h1 rebooting: the reboot command succeeded at 2026-11-21T01:00:00Z, and the host is not back | boot-awaited
> node h1 boot=a3
> nodes-seen
  + reboot event=booted host=h1 index=0
  + node host=h1 step=(uncordon-due release=rebooted)
  ! uncordon ready after a2 h1 under 1
