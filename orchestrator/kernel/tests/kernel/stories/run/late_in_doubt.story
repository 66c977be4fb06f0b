# By a clock that is far ahead the deadline has passed: the run says that the time is in doubt, and goes on.
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
> clock disputed
> step 21600
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
> explain h1
  the clocks of 2 of 3 hosts differ from those of the orchestrator and NATS | status=prepared | since=2026-11-21T07:00:00Z | why=clock-disputed | in-run=clock-disputed
> step -21600
> clock trusted
> tick
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
