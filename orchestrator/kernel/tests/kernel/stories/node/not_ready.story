# A node that does not get ready keeps its slot until an operator says that nobody waits for it.
> settings kubernetes default:2
  + settings-adopted settings=(auto-approve=true groups=(default=2) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1 boot=a1
> host h2
> node h1
> node h2
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=0
  = created
  ! check h1 under 1
> cluster h1 drained boot=a1
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(drained boot-id=a1)
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  ! send rq-0-1795222800/h1/reboot/1 to leave a1
> deliver
  + reboot event=(command-sent attempt=1 sequence=2) host=h1 index=0
  ! nothing
> reply h1 reboot done
  + reboot event=booted host=h1 index=0
  + node host=h1 step=(uncordon-due release=rebooted)
  ! uncordon ready after a1 h1 under 1
> cluster h1 not-ready
  + node host=h1 step=(waiting waits=not-ready)
> uncordon h1
  = refused: h1 is under way: its node is uncordoned by itself; cancel or give up what is under way to end it now
> rq give-up 0
  + reboot event=(given-up actor=admin reason="no power") host=h1 index=0
  + node host=h1 step=(uncordon-due release=not-needed)
  = done
  ! uncordon h1 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + slot-released host=h1 why=not-needed
  ! nothing
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T02:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=4
  + r1 h2: command-sent action=prepare attempt=1 sequence=5
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> cluster h1 drained boot=a1
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(drained boot-id=a1)
  + r1 h1: drained
  ! send r1/h1/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h1 upgrade done
  + r1 h1: recovering
  + node host=h1 step=(uncordon-due release=upgraded)
  ! uncordon ready h1 under 1
> cluster h1 not-ready
  + node host=h1 step=(waiting waits=not-ready)
> uncordon h1
  = refused: h1 is under way: its node is uncordoned by itself; cancel or give up what is under way to end it now
> give-up h1
  + r1 h1: upgraded
  + r1 h2: slot-granted drain=true group=default provider=embedded
  = done
  ! uncordon ready h1 under 1, check h2 under 1
> uncordon h1
  + node host=h1 step=(uncordon-requested actor=admin reason=mended)
  = done
  ! uncordon h1 under 1, check h2 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + slot-released host=h1 why=not-needed
  ! check h2 under 1
# An entry whose node is not drained any more when the next leader looks is given up before it is told to reboot.
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
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started drain=true group=default provider=embedded) host=h1 index=1
  = created
  ! check h1 under 1
> cluster h1 drained boot=a1
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(drained boot-id=a1)
  + reboot event=(reboot-began boot-id=a1) host=h1 index=1
  ! send rq-1-1795222800/h1/reboot/1 to leave a1
> rq give-up 1
  = refused: the command to h1, or the reply to it, is not known yet: try again in a moment
> fence
  + fenced leader=one sequence=10
  + fence-passed sequence=10
  ! evict from h1 under 10
> cluster h1 remaining late-0
  + node host=h1 step=(cordoned fence=(restored=0 sequence=10))
  + node host=h1 step=recheck-began
  + node host=h1 step=(waiting waits=(pods pods=(count=1 first=[(name=late-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])))
  ! evict from ours h1 under 10
> rq give-up 1
  + reboot event=(given-up actor=admin reason="no power") host=h1 index=1
  + node host=h1 step=(uncordon-due release=not-needed)
  = done
  ! uncordon h1 under 10
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + slot-released host=h1 why=not-needed
  ! nothing
> state
  r1 cancelled
  h1 upgraded
  h2 cancelled: the run was cancelled by admin
