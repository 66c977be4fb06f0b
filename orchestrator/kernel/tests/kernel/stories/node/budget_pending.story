# A budget that Kubernetes is still computing is waited for under the cordon, with its end, and the slot is kept. It is no refusal.
> settings kubernetes default:1 reboots=1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1 boot=a1
> host h2 boot=a2
> node h1
> node h2
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1 h2
  + reboots-queued actor=admin hosts=[h1 h2]
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  = created
  ! check h1 under 1
> cluster h1 pending db-0
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(waiting waits=(pods pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget-pending message="the budget db is being processed" until=2026-11-21T01:00:10Z) since=2026-11-21T01:00:00Z)])))
  ! check cordoned h1 under 1
> queue
  0 h1 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z: pod shop/db-0 waits for its budget until 2026-11-21T01:00:10Z: the budget db is being processed, since 2026-11-21T01:00:00Z | node-under-way
  1 h2 queued: 1 is under way, as many as may be at once | full
# Nothing new until the next time is known.
> cluster h1 pending db-0
> wait 10s
> cluster h1 pending db-0
  + node host=h1 step=(waiting waits=(pods pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget-pending message="the budget db is being processed" until=2026-11-21T01:00:20Z) since=2026-11-21T01:00:10Z)])))
> queue
  0 h1 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z: pod shop/db-0 waits for its budget until 2026-11-21T01:00:20Z: the budget db is being processed, since 2026-11-21T01:00:00Z | node-under-way
  1 h2 queued: 1 is under way, as many as may be at once | full
# A refusal beside it is one.
> cluster h1 remaining db-0
  + node host=h1 step=(uncordon-due reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:10Z)])) release=drain-given-up)
  ! uncordon h1 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + reboot event=(backed-off reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:10Z)])) until=2026-11-21T01:00:20Z) host=h1 index=0
  + slot-released host=h1 why=drain-given-up
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=1
  ! check h2 under 1
> queue
  0 h1 queued: its node cannot be drained: pod shop/db-0 is kept by the budget db, since 2026-11-21T01:00:10Z; it is tried again from 2026-11-21T01:00:20Z on | backed-off
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:10Z | node-under-way
