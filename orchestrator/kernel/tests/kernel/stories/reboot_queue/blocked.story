# What keeps entries from starting.
> host h1 boot=a1
> host h2 boot=a2
> host h3 boot=a3 unreachable
> put-config debian maintenance-windows=Saturday~04:00~2h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=2h start-time=04:00 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(after=(maintenance-windows=[(days-of-week=Saturday duration=2h start-time=04:00 timezone=site-local)] worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  = created
> queue
  0 h1 queued: too many hosts that are not under way are unreachable, not heard yet, or not ready as nodes: 1, h3 for example; [reboot] maximum-unreachable-nodes-for-reboot allows 0 | unreachable
> host h3 boot=a3 awaited
> queue
  0 h1 queued: too many hosts that are not under way are unreachable, not heard yet, or not ready as nodes: 1, h3 for example; [reboot] maximum-unreachable-nodes-for-reboot allows 0 | unreachable
> host h3 boot=a3 unreachable
> settings default:1 unreachable=1 in-windows
  + settings-adopted settings=(auto-approve=true reboot=(in-windows=true max-concurrent=1 unreachable-max=1))
> queue
  0 h1 queued: no maintenance window is open, and reboots are bound to them ([reboot] in-windows) | no-window
> clock 40
> queue
  0 h1 queued: the orchestrator's clock is 40 s ahead of NATS | clock-skew
> clock trusted
> wait 3h
> tick
  + reboot event=(started group=default provider=embedded) host=h1 index=0
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  ! send rq-0-1795222800/h1/reboot/1 to leave a1
> deliver
  + reboot event=(command-sent attempt=1 sequence=2) host=h1 index=0
  ! nothing
# What is under way when the window closes is finished.
> wait 2h
> tick
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
> rq add h2
  + reboots-queued actor=admin hosts=[h2]
  = created
> queue
  1 h2 queued: no maintenance window is open, and reboots are bound to them ([reboot] in-windows) | no-window
> settings default:1 unreachable=1
  + settings-adopted settings=(auto-approve=true reboot=(max-concurrent=1 unreachable-max=1))
  + reboot event=(started group=default provider=embedded) host=h2 index=1
  + reboot event=(reboot-began boot-id=a2) host=h2 index=1
  ! send rq-1-1795240800/h2/reboot/1 to leave a2
> host h2
> tick
> queue
  1 h2 rebooting: its reboot command is about to be sent | command-unsent
> host h2 boot=a2 group=nowhere
> tick
> queue
  1 h2 rebooting: its reboot command is about to be sent | command-unsent
> lock default n1
  + lock-awaited actor=admin group=default id=n1
  = refused: the only slot is held by h2 since 2026-11-21T06:00:00Z
> host h2 boot=a2
> tick
> queue
  1 h2 rebooting: its reboot command is about to be sent | command-unsent
> unlock default n1
  + lock-wait-ended actor=admin group=default id=n1
  = done
> queue
  1 h2 rebooting: its reboot command is about to be sent | command-unsent
> gone h2
> tick
> explain h2
  entry 1 of the reboot queue is rebooting; no worker has announced itself on it | why=reboot-under-way,not-announced
> deliver
  + reboot event=(command-sent attempt=1 sequence=4) host=h2 index=1
  ! nothing
> reply h2 reboot done
  + reboot event=rebooted host=h2 index=1
  + slot-released host=h2 why=rebooted
> queue
  empty
