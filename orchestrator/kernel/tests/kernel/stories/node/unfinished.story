# A host whose node is being drained when its run ends says what the drain waited for.
> settings kubernetes default:1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> node h1 boot=a1
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> trigger r1 timeout=5m
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T01:05:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T01:05:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> cluster h1 clear
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=eviction-began
  ! evict from cordoned h1 under 1
> cluster h1 remaining db-0
  + node host=h1 step=(waiting waits=(pods pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])))
> wait 5m
> tick
  + r1 h1: not-reached reason=(run-timed-out waited-for=(node-undrained waits=(pods pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)]))))
  + node host=h1 step=(uncordon-due release=not-needed)
  + run-ended counts=(not-reached=1) result=timed-out run=r1
  ! uncordon h1 under 1
> explain h1
  it has held a slot of group default since 2026-11-21T01:00:00Z: the run timed out before its upgrade: its node was being drained: pod shop/db-0 is kept by the budget db, since 2026-11-21T01:00:00Z; its node is being uncordoned since 2026-11-21T01:05:00Z; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,node-under-way,no-run,no-windows
