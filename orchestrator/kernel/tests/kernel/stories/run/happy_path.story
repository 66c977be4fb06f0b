# Three hosts, one of which needs a reboot.
> host h1
> host h2
> host h3
> settings embedded default:1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> explain h1
  its prepare command is about to be sent | status=pending | since=2026-11-21T01:00:00Z | why=command-unsent@2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> explain h2
  its worker has not answered prepare yet | status=preparing | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T05:00:00Z
> reply h1 prepare done
  + r1 h1: prepared
> reply h3 prepare to=4 done
  + r1 h3: prepared
> explain h1
  waiting until 1 more host is prepared | status=prepared | since=2026-11-21T01:00:00Z | why=hosts-unprepared@2026-11-21T05:00:00Z
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> state
  r1 active
  h1 upgrading
  h2 prepared
  h3 prepared
  slot h1: begun=false command=null group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> explain h1
  its upgrade command is about to be sent | status=upgrading | since=2026-11-21T01:00:00Z | why=command-unsent@2026-11-21T05:00:00Z
> explain h2
  waiting for its turn: h1 is under way | status=prepared | since=2026-11-21T01:00:00Z | why=host-under-way@2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> explain h1
  its worker has not answered upgrade yet | status=upgrading | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T05:00:00Z
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=10
  ! nothing
> reply h2 upgrade reboot-required
  + r1 h2: reboot-required
  ! send r1/h2/reboot/1 until 2026-11-21T05:00:00Z
> explain h2
  its reboot command is about to be sent | status=rebooting | since=2026-11-21T01:00:00Z | why=command-unsent@2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=reboot attempt=1 sequence=12
  ! nothing
> explain h2
  its worker has not answered reboot yet | status=rebooting | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T01:30:00Z
> reply h2 reboot done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + r1 h3: slot-granted group=default provider=embedded
  ! send r1/h3/upgrade/1 until 2026-11-21T05:00:00Z
> explain h2
  status=upgraded | since=2026-11-21T01:00:00Z
> deliver
  + r1 h3: command-sent action=upgrade attempt=1 sequence=14
  ! nothing
> reply h3 upgrade done
  + r1 h3: upgraded
  + slot-released host=h3 why=upgraded
  + run-ended counts=(upgraded=3) result=completed run=r1
> state
  r1 completed
  h1 upgraded
  h2 upgraded
  h3 upgraded
> explain h1
  no run is active; no run starts automatically: no maintenance windows are configured | why=no-run,no-windows
