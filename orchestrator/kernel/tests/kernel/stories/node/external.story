# With a lock server a slot may be granted when an API server is under way by then: the turn is lost, and the slot given back.
> settings external kubernetes default:3
  + settings-adopted settings=(auto-approve=true groups=(default=3) kubernetes=(drain-timeout=10m) provider=external reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1 group=a
> host h2 group=b
> node h1 api-server
> node h2
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian rollout/max-concurrent=2
  + config-replaced actor=admin config=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> trigger r1 timeout=20h
  + run-started hosts=[(application=debian group=a host=h1) (application=debian group=b host=h2)] not-after=2026-11-21T21:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T21:00:00Z, send r1/h2/prepare/1 until 2026-11-21T21:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + slot-requested group=a host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=a)
  + slot-requested group=b host=h2 run=r1
  + r1 h2: waiting reason=(asking-for-slot group=b)
  ! lock h1 of a, lock h2 of b
> locked h1 granted
  + r1 h1: slot-granted drain=true group=a provider=external
  ! lock h2 of b, check h1 under 1
> locked h2 granted
  + r1 h2: turn-lost
  + slot-release-due host=h2 why=not-needed
  ! unlock h2 of b, check h1 under 1
> explain h2
  waiting until its earlier slot has been given back | status=prepared | since=2026-11-21T01:00:00Z | why=earlier-slot@2026-11-21T21:00:00Z
> unlocked h2 granted
  + slot-released host=h2 why=not-needed
  ! check h1 under 1
> cluster h1 drained
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=drained
  + r1 h1: drained
  ! send r1/h1/upgrade/1 until 2026-11-21T21:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> reply h1 upgrade done
  + r1 h1: recovering
  + node host=h1 step=(uncordon-due release=upgraded)
  ! uncordon ready h1 under 1
> cluster h1 unreachable
  + node host=h1 step=(waiting waits=(unreachable why=timed-out))
> state
  r1 active
  h1 recovering
  h2 prepared
  slot h1: begun=true command=(action=upgrade sequence=6) group=a provider=external run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + r1 h1: upgraded
  + slot-release-due host=h1 why=upgraded
  + slot-requested group=b host=h2 run=r1
  + r1 h2: waiting reason=(asking-for-slot group=b)
  ! lock h2 of b, unlock h1 of a
> unlocked h1 granted
  + slot-released host=h1 why=upgraded
  ! lock h2 of b
> locked h2 granted
  + r1 h2: slot-granted drain=true group=b provider=external
  ! check h2 under 1
# A drain that is given up gives the slot back, too.
> cluster h2 remaining db-0
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=(uncordon-due reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])) release=drain-given-up)
  ! uncordon h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + r1 h2: backed-off reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])) until=2026-11-21T01:00:10Z
  + slot-release-due host=h2 why=drain-given-up
  ! unlock h2 of b
> unlocked h2 granted
  + slot-released host=h2 why=drain-given-up
  ! nothing
> explain h2
  its node cannot be drained: pod shop/db-0 is kept by the budget db, since 2026-11-21T01:00:00Z; not drained again before 2026-11-21T01:00:10Z | status=prepared | since=2026-11-21T01:00:00Z | why=drain-refused@2026-11-21T01:00:10Z | in-run=drain-refused
> wait 5m
> tick
  + slot-requested group=b host=h2 run=r1
  + r1 h2: waiting reason=(asking-for-slot group=b)
  ! lock h2 of b
> locked h2 granted
  + r1 h2: slot-granted drain=true group=b provider=external
  ! check h2 under 1
