# Hosts that need a reboot are queued when a maintenance window opens, each once in it.
> host h1 boot=a1 required=kernel
> host h2 boot=a2
> host h3 required=kernel
> host h4 boot=a4 required=libc
> host h5 boot=a5 required=libc unreachable
> put-config nobody maintenance-windows=Saturday~04:00~2h;Sunday~04:00~2h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=2h start-time=04:00 timezone=site-local) (days-of-week=Sunday duration=2h start-time=04:00 timezone=site-local)] worker-applications=[(name=nobody)]) difference=[(after=(maintenance-windows=[(days-of-week=Saturday duration=2h start-time=04:00 timezone=site-local) (days-of-week=Sunday duration=2h start-time=04:00 timezone=site-local)] worker-applications=[(name=nobody)]) path=)]
  = created
> settings default:1 in-windows queue-required unreachable=1
  + settings-adopted settings=(auto-approve=true reboot=(in-windows=true max-concurrent=1 queue-required=true unreachable-max=1))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> tick
> wait 3h
> clock unmeasured
> tick
> clock trusted
> tick
  + reboots-queued actor="[reboot] queue-required" hosts=[h1 h4] reason="they need a reboot" window=2026-11-21T04:00:00Z
  + reboot event=(started group=default provider=embedded) host=h1 index=0
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  ! send rq-0-1795233600/h1/reboot/1 to leave a1
> deliver
  + reboot event=(command-sent attempt=1 sequence=2) host=h1 index=0
  ! nothing
# It says so still after its reboot, and waits for the next window.
> host h1 boot=b1 required=kernel
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
  + reboot event=(started group=default provider=embedded) host=h4 index=1
  + reboot event=(reboot-began boot-id=a4) host=h4 index=1
  ! send rq-1-1795233600/h4/reboot/1 to leave a4
> tick
# Somebody has rebooted h4 meanwhile, and the window closes: when it no longer needs a reboot, its entry is cancelled.
> queue
  1 h4 rebooting: its reboot command is about to be sent | command-unsent
> reply h4 reboot done
  + ignored host=h4 reply=(action=reboot result=done) sequence=4 why=nothing-outstanding
> deliver
  + reboot event=(command-sent attempt=1 sequence=5) host=h4 index=1
  ! nothing
> host h4 boot=b4
> reply h4 reboot done
  + reboot event=rebooted host=h4 index=1
  + slot-released host=h4 why=rebooted
> wait 23h
> tick
> wait 2h
> host h2 boot=a2 required=kernel
> tick
  + reboots-queued actor="[reboot] queue-required" hosts=[h1 h2] reason="they need a reboot" window=2026-11-22T04:00:00Z
  + reboot event=(started group=default provider=embedded) host=h1 index=2
  + reboot event=(reboot-began boot-id=b1) host=h1 index=2
  ! send rq-2-1795323600/h1/reboot/1 to leave b1
> host h2 boot=b2
> tick
  + reboot event=(cancelled actor="[reboot] queue-required" reason="it no longer needs a reboot") host=h2 index=3
  + reboot event=removed host=h2 index=3
> queue
  2 h1 rebooting: its reboot command is about to be sent | command-unsent
# Without the setting none is queued.
> settings default:1 in-windows
  + settings-adopted settings=(auto-approve=true reboot=(in-windows=true max-concurrent=1 unreachable-max=0))
> rq cancel-all
  + reboot event=(cancelled actor=admin) host=h1 index=2
  = done
> deliver
  + reboot event=(command-sent attempt=1 sequence=7) host=h1 index=2
  ! nothing
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=2
  + slot-released host=h1 why=rebooted
> tick
> queue
  empty
