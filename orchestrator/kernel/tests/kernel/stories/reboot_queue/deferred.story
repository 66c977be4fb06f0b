# The entries of a deferred host stay queued, and others go before it.
> host h1 boot=a1
> host h2 boot=b1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> defer h1 until=2026-11-21T03:00:00Z
  + host-deferred actor=admin host=h1 reason="the quarter closes" until=2026-11-21T03:00:00Z
  = done
> rq add h1 h2
  + reboots-queued actor=admin hosts=[h1 h2]
  + reboot event=(started group=default provider=embedded) host=h2 index=1
  + reboot event=(reboot-began boot-id=b1) host=h2 index=1
  = created
  ! send rq-1-1795222800/h2/reboot/1 to leave b1
> deliver
  + reboot event=(command-sent attempt=1 sequence=2) host=h2 index=1
  ! nothing
> explain h1
  deferred by admin until 2026-11-21T03:00:00Z: the quarter closes | why=host-deferred@2026-11-21T03:00:00Z
> queue
  0 h1 queued: 1 is under way, as many as may be at once | full
  1 h2 rebooting: its worker has not answered reboot since 2026-11-21T01:00:00Z | reply-awaited
> reply h2 reboot done
  + reboot event=rebooted host=h2 index=1
  + slot-released host=h2 why=rebooted
> queue
  0 h1 queued: it is deferred by admin until 2026-11-21T03:00:00Z: the quarter closes | host-deferred
> wait 7200
> tick
  + deferral-ended host=h1
  + reboot event=(started group=default provider=embedded) host=h1 index=0
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  ! send rq-0-1795222800/h1/reboot/1 to leave a1
