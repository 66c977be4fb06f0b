# The mark of a node is of a journal from before the site was set up anew. It is named, nothing starts there, and an operator
# takes it over.
> settings kubernetes default:2 reboots=2 command=2m
  + settings-adopted settings=(auto-approve=true groups=(default=2) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) command=(within=2m) max-concurrent=2 unreachable-max=0))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> node h1 boot=a1 unschedulable mark=900
> node h2 boot=b1
> nodes-seen
  + node host=h1 step=uncordon-due
  ! uncordon if marked h1 under 1
> cluster h1 superseded 900
  + node host=h1 step=(waiting waits=(foreign-mark fence=(restored=0 sequence=900)))
# While nobody can look at it, it is still there for an operator to decide about.
> cluster h1 unreachable
> explain h1
  its node is being uncordoned since 2026-11-21T01:00:00Z: its node has a mark of a journal that this site does not have, from before it was set up anew or put back; `os-upgrade hosts uncordon` takes it over; no worker has announced itself on it | why=node-under-way,not-announced
> rq add h1 h2
  + reboots-queued actor=admin hosts=[h1 h2]
  + reboot event=(started drain=true group=default provider=embedded) host=h2 index=1
  = created
  ! uncordon if marked h1 under 1, check h2 under 1
> queue
  0 h1 queued: its node has a mark of a journal that this site does not have; `os-upgrade hosts uncordon --reason=TEXT h1` takes it over | foreign-mark
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
> uncordon h1 set up anew
  + node host=h1 step=(uncordon-requested actor=admin reason=mended)
  = done
  ! uncordon if marked by 900 too h1 under 1, check h2 under 1
> cluster h1 superseded 901
  + node host=h1 step=(waiting waits=(foreign-mark fence=(restored=0 sequence=901)))
> uncordon h1 set up anew, again
  + node host=h1 step=(uncordon-requested actor=admin reason=mended)
  = done
  ! uncordon if marked by 901 too h1 under 1, check h2 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  ! check h2 under 1
> node h1 boot=a1
> nodes-seen
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  ! check h1 under 1, check h2 under 1
> queue
  0 h1 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
# The drain of one that is found only then is given up, and what it held is free.
> cluster h1 superseded 900
  + node host=h1 step=uncordoned
  + reboot event=(backed-off reason=foreign-mark until=2026-11-21T01:05:00Z) host=h1 index=0
  + slot-released host=h1 why=drain-given-up
  ! check h2 under 1
> queue
  0 h1 queued: the drain of its node was given up: its node has a mark of a journal that this site does not have, from before it was set up anew or put back; `os-upgrade hosts uncordon` takes it over; it is tried again from 2026-11-21T01:05:00Z on | backed-off
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
# A mark that names another journal is known by that, even if its fence is not later.
> node h3 boot=c1 unschedulable mark=1 of-other-journal
> rq add h3
  + reboots-queued actor=admin hosts=[h3]
  = created
> queue
  0 h1 queued: the drain of its node was given up: its node has a mark of a journal that this site does not have, from before it was set up anew or put back; `os-upgrade hosts uncordon` takes it over; it is tried again from 2026-11-21T01:05:00Z on | backed-off
  1 h2 draining: its node is being checked before its drain since 2026-11-21T01:00:00Z | node-under-way
  2 h3 queued: its node has a mark of a journal that this site does not have; `os-upgrade hosts uncordon --reason=TEXT h3` takes it over | foreign-mark
