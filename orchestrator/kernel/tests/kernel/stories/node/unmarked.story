# Somebody removes the mark of a node alone. The journal knows that it was cordoned from here, so it is made schedulable; where an
# administrator had cordoned it before, or nobody can tell, it stays as it is.
> settings kubernetes default:3 reboots=3 command=2m
  + settings-adopted settings=(auto-approve=true groups=(default=3) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) command=(within=2m) max-concurrent=3 unreachable-max=0))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> node h1 boot=a1
> node h2 boot=b1
> node h3 boot=c1
> rq add h1 h2 h3
  + reboots-queued actor=admin hosts=[h1 h2 h3]
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=1
  + reboot event=(started drain=true group=default provider=embedded) host=h3 index=2
  = created
  ! check h1 under 1, check h2 under 1, check h3 under 1
> cluster h1 clear
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=eviction-began
  ! evict from cordoned h1 under 1, check h2 under 1, check h3 under 1
> cluster h2 clear admin-cordon
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1) was-unschedulable=true)
  + node host=h2 step=eviction-began
  ! evict from cordoned h1 under 1, evict from cordoned h2 under 1, check h3 under 1
> cluster h3 clear
  + node host=h3 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h3 step=eviction-began
  ! evict from cordoned h1 under 1, evict from cordoned h2 under 1, evict from cordoned h3 under 1
> cluster h1 lost mark removed
  + node host=h1 step=(uncordon-due reason=(cordon-lost detail="mark removed") release=drain-given-up)
  ! uncordon h1 under 1, evict from cordoned h2 under 1, evict from cordoned h3 under 1
> cluster h2 lost mark removed
  + node host=h2 step=(uncordon-due reason=(cordon-lost detail="mark removed") release=drain-given-up)
  ! uncordon h1 under 1, uncordon if marked h2 under 1, evict from cordoned h3 under 1
> takeover
> leadership-began
> fence
  + fenced leader=one sequence=2
  + fence-passed sequence=2
  ! uncordon if marked h1 under 2, uncordon if marked h2 under 2, evict from cordoned h3 under 2
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + reboot event=(backed-off reason=(cordon-lost detail="mark removed") until=2026-11-21T01:05:00Z) host=h1 index=0
  + slot-released host=h1 why=drain-given-up
  ! uncordon if marked h2 under 2, evict from cordoned h3 under 2
> cluster h3 drained boot=c1
  + node host=h3 step=(cordoned fence=(restored=0 sequence=2))
  + node host=h3 step=(drained boot-id=c1)
  + reboot event=(attempt-due boot-id=c1 node=node-h3) host=h3 index=2
  + reboot event=attempt-began host=h3 index=2
  ! uncordon if marked h2 under 2, reboot node-h3 by command, attempt 1
