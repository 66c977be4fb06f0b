# Nodes of a cluster reboot by command, with and without a worker.
> settings kubernetes default:3 reboots=2 command=2m
  + settings-adopted settings=(auto-approve=true groups=(default=3) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) command=(within=2m) max-concurrent=2 unreachable-max=0))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1
  = refused: the nodes of the Kubernetes cluster have not been seen of late, so it is not known which of these hosts are nodes; nothing is queued: try again once they are
> node h1 boot=a1
> rq add h9
  = refused: h9 is no node of the cluster and has announced no worker; nothing is queued
> node h2 boot=b1
> host h2 boot=b1
> rq add h1 h2
  + reboots-queued actor=admin hosts=[h1 h2]
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=1
  = created
  ! check h1 under 1, check h2 under 1
> cluster h1 drained boot=a1
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(drained boot-id=a1)
  + reboot event=(attempt-due boot-id=a1 node=node-h1) host=h1 index=0
  + reboot event=attempt-began host=h1 index=0
  ! check h2 under 1, reboot node-h1 by command, attempt 1
> queue
  0 h1 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
> command h1 succeeded
  + reboot event=attempt-succeeded host=h1 index=0
  ! check h2 under 1
> queue
  0 h1 rebooting: the reboot command succeeded at 2026-11-21T01:00:00Z, and the host is not back | boot-awaited
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
> node h1 boot=a1 not-ready
> tick
> node h1 boot=a2 not-ready
> tick
> node h1 boot=a2
> nodes-seen
  + reboot event=booted host=h1 index=0
  + node host=h1 step=(uncordon-due release=rebooted)
  ! uncordon ready after a1 h1 under 1, check h2 under 1
> queue
  0 h1 rebooting: its node is being uncordoned since 2026-11-21T01:00:00Z | node-under-way
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
  ! check h2 under 1
# A leader that takes over drains once more before it repeats the command.
> cluster h2 drained boot=b1
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=(drained boot-id=b1)
  + reboot event=(attempt-due boot-id=b1 node=node-h2) host=h2 index=1
  + reboot event=attempt-began host=h2 index=1
  ! reboot node-h2 by command, attempt 1
> takeover
> leadership-began
  + reboot event=(attempt-unknown reason=(reboot-unknown detail="the leader that ran it does not lead any more" output=)) host=h2 index=1
  ! nothing
> queue
  1 h2 rebooting: whether the reboot command has had an effect is not known: the leader that ran it does not lead any more; unknown since 2026-11-21T01:00:00Z; it is run again from 2026-11-21T01:32:00Z on if the host is ready in its old boot | retry-awaited
> fence
  + fenced leader=one sequence=2
  + fence-passed sequence=2
  ! hold h2 under 2
> cluster h2 held
  + node host=h2 step=(cordoned fence=(restored=0 sequence=2))
  ! nothing
> wait 1920
> tick
  + reboot event=(attempt-due boot-id=b1 node=node-h2) host=h2 index=1
  ! evict from ours h2 under 2
> queue
  1 h2 rebooting: its node is being drained once more before the reboot since 2026-11-21T01:00:00Z | node-under-way
> cluster h2 remaining web-0
  + node host=h2 step=(waiting waits=(pods pods=(count=1 first=[(name=web-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:32:00Z)])))
> queue
  1 h2 rebooting: its node is being drained once more before the reboot since 2026-11-21T01:00:00Z: pod shop/web-0 is kept by the budget db, since 2026-11-21T01:32:00Z | node-under-way
> cluster h2 drained boot=b1
  + node host=h2 step=(drained boot-id=b1)
  + reboot event=attempt-began host=h2 index=1
  ! reboot node-h2 by command, attempt 2
> command h2 succeeded
  + reboot event=attempt-succeeded host=h2 index=1
  ! nothing
# A node that somebody else has rebooted before its command is run is not rebooted again.
> node h2 boot=b2
> nodes-seen
  + reboot event=booted host=h2 index=1
  + node host=h2 step=(uncordon-due release=rebooted)
  ! uncordon ready after b1 h2 under 2
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + reboot event=rebooted host=h2 index=1
  + slot-released host=h2 why=rebooted
  ! nothing
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=2
  = created
  ! check h1 under 2
> cluster h1 drained boot=a2
  + node host=h1 step=(cordoned fence=(restored=0 sequence=2))
  + node host=h1 step=(drained boot-id=a2)
  + reboot event=(attempt-due boot-id=a2 node=node-h1) host=h1 index=2
  + reboot event=attempt-began host=h1 index=2
  ! reboot node-h1 by command, attempt 1
> queue
  2 h1 rebooting: the reboot command is being run since 2026-11-21T01:32:00Z | command-runs
# An entry of a node that is not in the cluster any more waits, and says so.
> rq add h2
  + reboots-queued actor=admin hosts=[h2]
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=3
  = created
  ! check h2 under 2, reboot node-h1 by command, attempt 1
> no-nodes
> queue
  2 h1 rebooting: the reboot command is being run since 2026-11-21T01:32:00Z | command-runs
  3 h2 draining: the nodes of the Kubernetes cluster have not been seen of late | cluster-unseen
> node h1 boot=a3
> queue
  2 h1 rebooting: the reboot command is being run since 2026-11-21T01:32:00Z | command-runs
  3 h2 draining: the cluster shows no node for it | no-node
