# A node that is looked at once more for a new leader, with nothing on it, is not said to be drained again.
> settings kubernetes default:1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> node h1
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
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
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> cluster h1 drained boot=a1
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(drained boot-id=a1)
  + r1 h1: drained
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> fence
  + fenced leader=one sequence=4
  + fence-passed sequence=4
  ! evict from h1 under 4
> cluster h1 drained boot=a1
  + node host=h1 step=(cordoned fence=(restored=0 sequence=4))
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=5
  ! nothing
