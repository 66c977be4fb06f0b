# A run and the queue never have the same host under way.
> host h1 boot=a1
> host h2 boot=a2
> put-config debian rollout/max-concurrent=2
  + config-replaced actor=admin config=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> settings default:2 reboots=2
  + settings-adopted settings=(auto-approve=true groups=(default=2) reboot=(max-concurrent=2 unreachable-max=0))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started group=default provider=embedded) host=h1 index=0
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  = created
  ! send rq-0-1795222800/h1/reboot/1 to leave a1
> deliver
  + reboot event=(command-sent attempt=1 sequence=2) host=h1 index=0
  ! nothing
# h1 reboots for the queue. Until it has answered, it is sent nothing else.
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h2 prepare done
  + r1 h2: prepared
> explain h1
  entry 0 of the reboot queue is rebooting | status=pending | since=2026-11-21T01:00:00Z | why=reboot-under-way@2026-11-21T05:00:00Z
> rq add h2
  + reboots-queued actor=admin hosts=[h2]
  = created
> queue
  0 h1 rebooting: its worker has not answered reboot since 2026-11-21T01:00:00Z | reply-awaited
  1 h2 queued: run r1 is not through with it | in-run
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=6
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z, send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  + r1 h2: command-sent action=upgrade attempt=1 sequence=9
  ! nothing
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + reboot event=(started group=default provider=embedded) host=h2 index=1
  + reboot event=(reboot-began boot-id=a2) host=h2 index=1
  ! send rq-1-1795222800/h2/reboot/1 to leave a2
> queue
  1 h2 rebooting: its reboot command is about to be sent | command-unsent
> deliver
  + reboot event=(command-sent attempt=1 sequence=11) host=h2 index=1
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r1
> reply h2 reboot done
  + reboot event=rebooted host=h2 index=1
  + slot-released host=h2 why=rebooted
> queue
  empty
> state
  r1 completed
  h1 upgraded
  h2 upgraded
# A run whose host reboots when the run ends leaves the entry alone.
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started group=default provider=embedded) host=h1 index=2
  + reboot event=(reboot-began boot-id=a1) host=h1 index=2
  = created
  ! send rq-2-1795222800/h1/reboot/1 to leave a1
> host h1 boot=b1
> tick
> deliver
  + reboot event=(command-sent attempt=1 sequence=14) host=h1 index=2
  ! nothing
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T02:00:00Z rollout=(max-concurrent=2) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h2/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r2 h2: command-sent action=prepare attempt=1 sequence=15
  ! nothing
> wait 2h
> tick
  + r2 h1: timed-out reason=(not-sent action=prepare)
  + r2 h2: timed-out reason=(no-reply action=prepare)
  + run-ended counts=(timed-out=2) result=timed-out run=r2
  ! retract 15 of h2
> queue
  2 h1 rebooting: its worker has not answered reboot since 2026-11-21T01:00:00Z | reply-awaited
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=2
  + slot-released host=h1 why=rebooted
> state
  r2 timed-out
  h1 timed-out: prepare could not be sent before not-after
  h2 timed-out: no reply to prepare before not-after
