# Slots of two groups are granted by a lock server together, and yet an API server is drained alone.
> settings external kubernetes
  + settings-adopted settings=(auto-approve=true groups=() kubernetes=(drain-timeout=10m) provider=external reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> host h2 group=edge
> node h1 api-server
> node h2
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian rollout/max-concurrent=2
  + config-replaced actor=admin config=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=edge host=h2)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  + slot-requested group=edge host=h2 run=r1
  + r1 h2: waiting reason=(asking-for-slot group=edge)
  ! lock h1 of default, lock h2 of edge
> locked h1 granted
  + r1 h1: slot-granted drain=true group=default provider=external
  ! lock h2 of edge, check h1 under 1
> locked h2 granted
  + r1 h2: turn-lost
  + slot-release-due host=h2 why=not-needed
  ! unlock h2 of edge, check h1 under 1
> explain h2
  waiting until its earlier slot has been given back | status=prepared | since=2026-11-21T01:00:00Z | why=earlier-slot@2026-11-21T05:00:00Z
> unlocked h2 granted
  + slot-released host=h2 why=not-needed
  ! check h1 under 1
> cluster h1 drained
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=drained
  + r1 h1: drained
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> reply h1 upgrade done
  + r1 h1: recovering
  + node host=h1 step=(uncordon-due release=upgraded)
  ! uncordon ready h1 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + r1 h1: upgraded
  + slot-release-due host=h1 why=upgraded
  + slot-requested group=edge host=h2 run=r1
  + r1 h2: waiting reason=(asking-for-slot group=edge)
  ! lock h2 of edge, unlock h1 of default
> locked h2 granted
  + r1 h2: slot-granted drain=true group=edge provider=external
  ! unlock h1 of default, check h2 under 1
