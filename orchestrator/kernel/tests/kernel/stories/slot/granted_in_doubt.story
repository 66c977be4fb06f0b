# A clock jumps past the deadline of a run. The run cannot end by it, so a slot that is granted meanwhile is given back.
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
> host h1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> step 43200
> clock 43200
> explain h1
  the orchestrator's clock is 43200 s ahead of NATS | status=waiting | since=2026-11-21T01:00:00Z | why=clock-skew | in-run=clock-skew
> locked h1 granted
  + r1 h1: turn-lost
  + slot-release-due host=h1 why=not-needed
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! nothing
> tick
> explain h1
  the orchestrator's clock is 43200 s ahead of NATS | status=prepared | since=2026-11-21T13:00:00Z | why=clock-skew | in-run=clock-skew
> step -43200
> clock trusted
> tick
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> locked h1 granted
  + r1 h1: slot-granted group=default provider=external
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
