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
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=3
  + r1 h2: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
# h1 reboots for the queue; only h2 is upgraded meanwhile.
> explain h1
  entry 0 of the reboot queue is rebooting | status=prepared | since=2026-11-21T01:00:00Z | blockers=reboot-under-way@2026-11-21T05:00:00Z
> rq add h2
  + reboots-queued actor=admin hosts=[h2]
  = created
> queue
  0 h1 rebooting: its worker has not answered reboot since 2026-11-21T01:00:00Z | reply-awaited
  1 h2 queued: run r1 is not through with it | in-run
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=7
  ! nothing
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + reboot event=(started group=default provider=embedded) host=h2 index=1
  + reboot event=(reboot-began boot-id=a2) host=h2 index=1
  ! send rq-1-1795222800/h2/reboot/1 to leave a2
> queue
  0 h1 rebooting: its worker has not answered reboot since 2026-11-21T01:00:00Z | reply-awaited
  1 h2 rebooting: its reboot command is about to be sent | command-unsent
> deliver
  + reboot event=(command-sent attempt=1 sequence=9) host=h2 index=1
  ! nothing
> reply h1 reboot to=4 done
  + ignored host=h1 reply=(action=reboot result=done) sequence=10 why=nothing-outstanding
> deliver
> reply h1 upgrade done
> reply h2 reboot done
  + reboot event=rebooted host=h2 index=1
  + slot-released host=h2 why=rebooted
> queue
  0 h1 rebooting: its worker has not answered reboot since 2026-11-21T01:00:00Z | reply-awaited
> state
  r1 active
  h1 prepared
  h2 upgraded
  slot h1: begun=true command=(action=reboot sequence=2) group=default provider=embedded run=rq-0-1795222800 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
# A run whose host reboots when the run ends leaves the entry alone.
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  = created
> deliver
> trigger r2 timeout=1h
  = refused: run r1 is active
> deliver
> wait 2h
> tick
> queue
  0 h1 rebooting: its worker has not answered reboot since 2026-11-21T01:00:00Z | reply-awaited
  2 h1 queued: run r1 is not through with it | in-run
> reply h1 reboot done
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> state
  r1 active
  h1 upgrading
  h2 upgraded
  slot h1: begun=false command=null group=default provider=embedded run=r1 since=2026-11-21T03:00:00Z standing=held unsent-at-fence=null
