# A host in every status.
> host h1
> host h2 skew=31
> host h3
> host h4 unreachable
> put-config debian rollout/max-concurrent=1 rollout/max-failures=1
  + config-replaced actor=admin config=(rollout=(max-failures=1) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-failures=1) worker-applications=[(name=debian)]) path=)]
  = created
> settings embedded default:0
  + settings-adopted settings=(auto-approve=true groups=(default=0))
> explain h1
  no run is active; no run starts automatically: no maintenance windows are configured | why=no-run,no-windows
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4 skipped=unreachable)] not-after=2026-11-21T05:00:00Z rollout=(max-failures=1) run=r1 trigger=(operator actor=admin)
  = done
> explain h1
  its prepare command is about to be sent | status=pending | since=2026-11-21T01:00:00Z | why=command-unsent@2026-11-21T05:00:00Z
> explain h4
  unreachable: no heartbeat when the run started | status=skipped | since=2026-11-21T01:00:00Z | why=unreachable | in-run=unreachable
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> explain h1
  its worker has not answered prepare yet | status=preparing | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T05:00:00Z
> explain h2
  its worker has not answered prepare yet; its clock is 31 s ahead of NATS | status=preparing | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T05:00:00Z,worker-clock-skew
> wait 5
> reply h1 prepare done
  + r1 h1: prepared
> explain h1
  waiting until 2 more hosts are prepared | status=prepared | since=2026-11-21T01:00:05Z | why=hosts-unprepared@2026-11-21T05:00:00Z
> reply h2 prepare bad disk
  + r1 h2: failed reason=(worker-error action=prepare message="bad disk")
> explain h2
  prepare failed: bad disk | status=failed | since=2026-11-21T01:00:05Z | why=worker-error | in-run=worker-error
> reply h3 prepare done
  + r1 h3: prepared
  + upgrades-began run=r1
  + r1 h1: waiting reason=(slot-denied denial=(full held=0 holders=[] provider=embedded slots=0) group=default)
> explain h1
  denied a slot of group default: the group has no slots (failed_lock_semaphore_full) | status=waiting | since=2026-11-21T01:00:05Z | why=slot-denied@2026-11-21T05:00:00Z | in-run=slot-denied
> explain h3
  waiting for its turn: h1 is first: denied a slot of group default: the group has no slots (failed_lock_semaphore_full) | status=prepared | since=2026-11-21T01:00:05Z | why=host-first@2026-11-21T05:00:00Z
> wait 5
> settings embedded default:1
  + settings-adopted settings=(auto-approve=true)
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> explain h1
  its upgrade command is about to be sent | status=upgrading | since=2026-11-21T01:00:10Z | why=command-unsent@2026-11-21T05:00:00Z
> explain h3
  waiting for its turn: h1 is under way | status=prepared | since=2026-11-21T01:00:05Z | why=host-under-way@2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> explain h1
  its worker has not answered upgrade yet | status=upgrading | since=2026-11-21T01:00:10Z | why=reply-awaited@2026-11-21T05:00:00Z
> host h1 unreachable
> explain h1
  its worker has not answered upgrade yet; it is unreachable: no heartbeat arrives from it | status=upgrading | since=2026-11-21T01:00:10Z | why=reply-awaited@2026-11-21T05:00:00Z,silent
> host h1
> reply h1 upgrade reboot-required
  + r1 h1: reboot-required
  ! send r1/h1/reboot/1 until 2026-11-21T05:00:00Z
> explain h1
  its reboot command is about to be sent | status=rebooting | since=2026-11-21T01:00:10Z | why=command-unsent@2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=reboot attempt=1 sequence=10
  ! nothing
> explain h1
  its worker has not answered reboot yet | status=rebooting | since=2026-11-21T01:00:10Z | why=reply-awaited@2026-11-21T01:30:10Z
> host h1 skew=-31
> explain h1
  its worker has not answered reboot yet; its clock is 31 s behind NATS | status=rebooting | since=2026-11-21T01:00:10Z | why=reply-awaited@2026-11-21T01:30:10Z,worker-clock-skew
> reply h1 reboot done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h3: slot-granted group=default provider=embedded
  ! send r1/h3/upgrade/1 until 2026-11-21T05:00:00Z
> explain h1
  status=upgraded | since=2026-11-21T01:00:10Z
> deliver
  + r1 h3: command-sent action=upgrade attempt=1 sequence=12
  ! nothing
> wait 20000
> tick
  + r1 h3: timed-out reason=(no-reply action=upgrade)
  + run-ended counts=(failed=1 skipped=1 timed-out=1 upgraded=1) result=timed-out run=r1
  ! retract 12 of h3
> explain h3
  it has held a slot of group default since 2026-11-21T01:00:10Z: no reply to upgrade before not-after; `os-upgrade lock release --group=default --id=h3 --reason TEXT` releases it; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,no-run,no-windows
> explain h1
  no run is active; no run starts automatically: no maintenance windows are configured | why=no-run,no-windows
> put-config none
  + config-replaced actor=admin config=(worker-applications=[]) difference=[(before=(max-failures=1) path=rollout) (after=[] before=[(name=debian)] path=worker-applications)]
  = done
> explain h1
  its worker's application is not among the configured ones | why=not-served
# Too many applications are announced on it.
> host h1 applications=a,b refused=debian,rpm
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=[(name=debian)] before=[] path=worker-applications)]
  = done
> explain h1
  its application debian does not count, because too many others are announced on it | why=application-refused
