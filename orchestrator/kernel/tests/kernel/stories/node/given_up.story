# A drain that is refused, takes too long, or whose cordon is changed by somebody else is given up, and others go first.
> settings kubernetes default:1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> host h2
> host h3
> node h1
> node h2
> node h3
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> trigger r1 timeout=20h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T21:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T21:00:00Z, send r1/h2/prepare/1 until 2026-11-21T21:00:00Z, send r1/h3/prepare/1 until 2026-11-21T21:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> cluster h1 remaining db-0
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(uncordon-due reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])) release=drain-given-up)
  ! uncordon h1 under 1
# The slot is held until the node is uncordoned.
> cluster h1 unreachable
  + node host=h1 step=(waiting waits=(unreachable why=timed-out))
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + r1 h1: backed-off reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])) until=2026-11-21T01:00:10Z
  + slot-released host=h1 why=drain-given-up
  + r1 h2: slot-granted drain=true group=default provider=embedded
  ! check h2 under 1
> explain h1
  its node cannot be drained: pod shop/db-0 is kept by the budget db, since 2026-11-21T01:00:00Z; not drained again before 2026-11-21T01:00:10Z | status=prepared | since=2026-11-21T01:00:00Z | why=drain-refused@2026-11-21T01:00:10Z | in-run=drain-refused
> cluster h2 clear
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=eviction-began
  ! evict from cordoned h2 under 1
> cluster h2 lost its mark was removed
  + node host=h2 step=(uncordon-due reason=(cordon-lost detail="its mark was removed") release=drain-given-up)
  ! uncordon h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + r1 h2: backed-off reason=(cordon-lost detail="its mark was removed") until=2026-11-21T01:05:00Z
  + slot-released host=h2 why=drain-given-up
  + r1 h3: slot-granted drain=true group=default provider=embedded
  ! check h3 under 1
> cluster h3 clear
  + node host=h3 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h3 step=eviction-began
  ! evict from cordoned h3 under 1
> wait 9m
> tick
> cluster h3 remaining db-0
  + node host=h3 step=(waiting waits=(pods pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:09:00Z)])))
> wait 1m
> tick
  + node host=h3 step=(uncordon-due reason=(drain-timed-out after=10m waits=(pods pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:09:00Z)]))) release=drain-given-up)
  ! uncordon h3 under 1
> cluster h3 uncordoned
  + node host=h3 step=uncordoned
  + r1 h3: backed-off reason=(drain-timed-out after=10m waits=(pods pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:09:00Z)]))) until=2026-11-21T01:15:00Z
  + slot-released host=h3 why=drain-given-up
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
# The backoff of the first is over.
> tick
> cluster h1 remaining db-0
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(uncordon-due reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:10:00Z)])) release=drain-given-up)
  ! uncordon h1 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + r1 h1: backed-off reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:10:00Z)])) until=2026-11-21T01:10:20Z
  + slot-released host=h1 why=drain-given-up
  + r1 h2: slot-granted drain=true group=default provider=embedded
  ! check h2 under 1
> explain h1
  its node cannot be drained: pod shop/db-0 is kept by the budget db, since 2026-11-21T01:10:00Z; not drained again before 2026-11-21T01:10:20Z | status=prepared | since=2026-11-21T01:10:00Z | why=drain-refused@2026-11-21T01:10:20Z | in-run=drain-refused
> state
  r1 active
  h1 prepared: its node cannot be drained: pod shop/db-0 is kept by the budget db, since 2026-11-21T01:10:00Z
  h2 draining
  h3 prepared: its node was not drained within 10m (drain-timeout): pod shop/db-0 is kept by the budget db, since 2026-11-21T01:09:00Z
  slot h2: begun=false command=null group=default provider=embedded run=r1 since=2026-11-21T01:10:00Z standing=held unsent-at-fence=null
# A host that backs off when the run is cancelled is cancelled, and uncordoned all the same.
> cluster h2 clear
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=eviction-began
  ! evict from cordoned h2 under 1
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r1
  + r1 h1: cancelled reason=(run-cancelled actor=admin)
  + r1 h2: cancelled reason=(run-cancelled actor=admin)
  + node host=h2 step=(uncordon-due release=not-needed)
  + r1 h3: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=3) result=cancelled run=r1
  = done
  ! uncordon h2 under 1
> explain h2
  it has held a slot of group default since 2026-11-21T01:10:00Z: the run was cancelled by admin; its node is being uncordoned since 2026-11-21T01:10:00Z; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,node-under-way,no-run,no-windows
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + slot-released host=h2 why=not-needed
  ! nothing
