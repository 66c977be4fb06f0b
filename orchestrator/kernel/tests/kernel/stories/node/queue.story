# The reboot queue drains nodes, too.
> settings kubernetes default:3 reboots=2
  + settings-adopted settings=(auto-approve=true groups=(default=3) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=2 unreachable-max=0))
> host h1 boot=a1
> host h2 boot=a2
> host h3 boot=a3
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1 h2 h3
  + reboots-queued actor=admin hosts=[h1 h2 h3]
  = created
> queue
  0 h1 queued: the nodes of the Kubernetes cluster have not been seen of late | cluster-unseen
  1 h2 queued: the nodes of the Kubernetes cluster have not been seen of late | cluster-unseen
  2 h3 queued: the nodes of the Kubernetes cluster have not been seen of late | cluster-unseen
> node h1
> node h2
> node h3
> tick
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=1
  ! check h1 under 1, check h2 under 1
> queue
  0 h1 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
  2 h3 queued: 2 are under way, as many as may be at once | full
> cluster h1 drained boot=a1
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(drained boot-id=a1)
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  ! send rq-0-1795222800/h1/reboot/1 to leave a1, check h2 under 1
> deliver
  + reboot event=(command-sent attempt=1 sequence=2) host=h1 index=0
  ! check h2 under 1
> reply h1 reboot done
  + reboot event=booted host=h1 index=0
  + node host=h1 step=(uncordon-due release=rebooted)
  ! uncordon ready after a1 h1 under 1, check h2 under 1
> queue
  0 h1 rebooting: its node is being uncordoned since 2026-11-21T01:00:00Z | node-under-way
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
  2 h3 queued: 2 are under way, as many as may be at once | full
> cluster h1 not-ready
  + node host=h1 step=(waiting waits=not-ready)
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
  + reboot event=(started drain=true group=default provider=embedded) host=h3 index=2
  ! check h2 under 1, check h3 under 1
# A drain that is refused is tried again later, and the next host goes first.
> cluster h2 remaining db-0
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=(uncordon-due reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])) release=drain-given-up)
  ! uncordon h2 under 1, check h3 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + reboot event=(backed-off reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])) until=2026-11-21T01:00:10Z) host=h2 index=1
  + slot-released host=h2 why=drain-given-up
  ! check h3 under 1
> queue
  1 h2 queued: its node cannot be drained: pod shop/db-0 is kept by the budget db, since 2026-11-21T01:00:00Z; it is tried again from 2026-11-21T01:00:10Z on | backed-off
  2 h3 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
> cluster h3 clear
  + node host=h3 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h3 step=eviction-began
  ! evict from cordoned h3 under 1
# A cancelled entry is removed once its node is uncordoned.
> rq cancel 2
  + reboot event=(cancelled actor=admin) host=h3 index=2
  + node host=h3 step=(uncordon-due release=not-needed)
  = done
  ! uncordon h3 under 1
> queue
  1 h2 queued: its node cannot be drained: pod shop/db-0 is kept by the budget db, since 2026-11-21T01:00:00Z; it is tried again from 2026-11-21T01:00:10Z on | backed-off
  2 h3 cancelled: its node is being uncordoned since 2026-11-21T01:00:00Z | node-under-way
> cluster h3 uncordoned
  + node host=h3 step=uncordoned
  + slot-released host=h3 why=not-needed
  + reboot event=removed host=h3 index=2
  ! nothing
> wait 5m
> tick
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=1
  ! check h2 under 1
> cluster h2 clear
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=eviction-began
  ! evict from cordoned h2 under 1
> rq give-up 1
  + reboot event=(given-up actor=admin reason="no power") host=h2 index=1
  + node host=h2 step=(uncordon-due release=not-needed)
  = done
  ! uncordon h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + slot-released host=h2 why=not-needed
  ! nothing
> state
# One API server at a time, and nothing beside it.
> node h3 api-server
> rq add h2 h3
  + reboots-queued actor=admin hosts=[h2 h3]
  + reboot event=(started drain=true group=default provider=embedded) host=h3 index=4
  = created
  ! check h3 under 1
> queue
  3 h2 queued: the API server h3 is under way, and nothing starts beside it | api-server-under-way
  4 h3 draining: its node is being checked before its drain since 2026-11-21T01:05:00Z | node-under-way
> cluster h3 drained
  + node host=h3 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h3 step=drained
  + reboot event=(reboot-began boot-id=a3) host=h3 index=4
  ! send rq-4-1795223100/h3/reboot/1 to leave a3
> deliver
  + reboot event=(command-sent attempt=1 sequence=4) host=h3 index=4
  ! nothing
> reply h3 reboot done
  + reboot event=booted host=h3 index=4
  + node host=h3 step=(uncordon-due release=rebooted)
  ! uncordon ready after a3 h3 under 1
> queue
  3 h2 queued: the API server h3 is under way, and nothing starts beside it | api-server-under-way
  4 h3 rebooting: its node is being uncordoned since 2026-11-21T01:05:00Z | node-under-way
> node h2 not-ready
> cluster h3 uncordoned
  + node host=h3 step=uncordoned
  + reboot event=rebooted host=h3 index=4
  + slot-released host=h3 why=rebooted
  ! nothing
> queue
  3 h2 queued: too many hosts that are not under way are unreachable, not heard yet, or not ready as nodes: 1, h2 for example; [reboot] maximum-unreachable-nodes-for-reboot allows 0 | unreachable
> node h2
> no-nodes
> tick
> queue
  3 h2 queued: the nodes of the Kubernetes cluster have not been seen of late | cluster-unseen
