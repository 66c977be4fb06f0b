# A node whose pods are gone is not drained while volumes are in use on it. That counts for the time-out of the drain.
> settings kubernetes default:1 reboots=1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1 boot=a1
> node h1
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  = created
  ! check h1 under 1
> cluster h1 clear
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=eviction-began
  ! evict from cordoned h1 under 1
> cluster h1 volumes pv-1 pv-2
  + node host=h1 step=(waiting waits=(volumes volumes=(count=2 first=[pv-1 pv-2] staying=0)))
> cluster h1 volumes pv-1 pv-2
> queue
  0 h1 draining: its node is being drained since 2026-11-21T01:00:00Z: volumes are still in use: pv-1, pv-2 | node-under-way
> cluster h1 volumes pv-2
  + node host=h1 step=(waiting waits=(volumes volumes=(count=1 first=[pv-2] staying=0)))
> wait 601s
> tick
  + node host=h1 step=(uncordon-due reason=(drain-timed-out after=10m waits=(volumes volumes=(count=1 first=[pv-2] staying=0))) release=drain-given-up)
  ! uncordon h1 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + reboot event=(backed-off reason=(drain-timed-out after=10m waits=(volumes volumes=(count=1 first=[pv-2] staying=0))) until=2026-11-21T01:15:01Z) host=h1 index=0
  + slot-released host=h1 why=drain-given-up
  ! nothing
> queue
  0 h1 queued: its node was not drained within 10m (drain-timeout): volumes are still in use: pv-2; it is tried again from 2026-11-21T01:15:01Z on | backed-off
> wait 10m
> tick
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  ! check h1 under 1
> cluster h1 clear
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=eviction-began
  ! evict from cordoned h1 under 1
> cluster h1 drained boot=a1
  + node host=h1 step=(drained boot-id=a1)
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  ! send rq-0-1795222800/h1/reboot/1 to leave a1
