# In runs, too, an API server is drained alone.
> settings kubernetes default:3
  + settings-adopted settings=(auto-approve=true groups=(default=3) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> host h2
> node h1 api-server
> node h2
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian rollout/max-concurrent=2
  + config-replaced actor=admin config=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> trigger r1 timeout=20h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T21:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
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
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> explain h2
  waiting for its turn: h1 is an API server and under way | status=prepared | since=2026-11-21T01:00:00Z | why=api-server-under-way@2026-11-21T21:00:00Z | in-run=api-server-under-way
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
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h2: slot-granted drain=true group=default provider=embedded
  ! check h2 under 1
> explain h2
  its node is being checked before its drain since 2026-11-21T01:00:00Z | status=draining | since=2026-11-21T01:00:00Z | why=node-under-way@2026-11-21T21:00:00Z | in-run=node-under-way
> no-nodes
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r1
  + r1 h2: cancelled reason=(run-cancelled actor=admin)
  + node host=h2 step=(uncordon-due release=not-needed)
  + run-ended counts=(cancelled=1 upgraded=1) result=cancelled run=r1
  = done
  ! uncordon if marked h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + slot-released host=h2 why=not-needed
  ! nothing
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=8
  + r2 h2: command-sent action=prepare attempt=1 sequence=9
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
> explain h1
  the nodes of the Kubernetes cluster have not been seen of late | status=prepared | since=2026-11-21T01:00:00Z | why=cluster-unseen@2026-11-21T05:00:00Z | in-run=cluster-unseen
