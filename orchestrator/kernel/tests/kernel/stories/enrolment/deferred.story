# On a deferred host nothing begins, until then or until an operator ends that.
> host h1
> host h2
> host h3
> put-config debian rollout/max-concurrent=2
  + config-replaced actor=admin config=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> settings default:2
  + settings-adopted settings=(auto-approve=true groups=(default=2))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> defer nobody
  = refused: there is no host nobody: none of that name has announced itself, been approved or been withdrawn
> defer h1 until=2026-11-21T00:59:00Z
  = refused: until: 2026-11-21T00:59:00Z has passed, it is 2026-11-21T01:00:00Z; give a later time, or none to defer until `os-upgrade hosts defer --end`
> defer h1 until=2026-11-21T03:00:00Z validate
  = valid
> defer h1 until=2026-11-21T03:00:00Z
  + host-deferred actor=admin host=h1 reason="the quarter closes" until=2026-11-21T03:00:00Z
  = done
> explain h1
  deferred by admin until 2026-11-21T03:00:00Z: the quarter closes | why=host-deferred@2026-11-21T03:00:00Z
# The same once more changes nothing; another end does.
> defer h1 until=2026-11-21T03:00:00Z
  = done
> defer h1 until=2026-11-21T02:00:00Z
  + host-deferred actor=admin host=h1 reason="the quarter closes" until=2026-11-21T02:00:00Z
  = done
# A run leaves it out.
> trigger r1 timeout=4h
  + run-started hosts=[(application=debian group=default host=h1 skipped=(host-deferred actor=admin reason="the quarter closes")) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=prepare attempt=1 sequence=2
  + r1 h3: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
  + upgrades-began run=r1
  + r1 h2: slot-granted group=default provider=embedded
  + r1 h3: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z, send r1/h3/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=6
  + r1 h3: command-sent action=upgrade attempt=1 sequence=7
  ! nothing
# One that has not begun is cancelled; one that was told to upgrade finishes.
> defer h2 why=a-demo
  + host-deferred actor=admin host=h2 reason=a-demo
  = done
> explain h2
  its worker has not answered upgrade yet | status=upgrading | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T05:00:00Z
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
> reply h3 upgrade done
  + r1 h3: upgraded
  + slot-released host=h3 why=upgraded
  + run-ended counts=(deferred=1 upgraded=2) result=completed run=r1
> state
  r1 completed
  h1 skipped: deferred by admin: the quarter closes
  h2 upgraded
  h3 upgraded
> trigger r2 timeout=4h
  + run-started hosts=[(application=debian group=default host=h1 skipped=(host-deferred actor=admin reason="the quarter closes")) (application=debian group=default host=h2 skipped=(host-deferred actor=admin reason=a-demo)) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h3/prepare/1 until 2026-11-21T05:00:00Z
> defer h3
  + host-deferred actor=admin host=h3 reason="the quarter closes"
  + r2 h3: cancelled reason=(host-deferred actor=admin reason="the quarter closes")
  + run-ended counts=(deferred=3) result=failed run=r2
  = done
  ! nothing
> end-deferral h3
  + deferral-ended actor=admin host=h3
  = done
> end-deferral h3
  = done
> state
  r2 failed
  h1 skipped: deferred by admin: the quarter closes
  h2 skipped: deferred by admin: a-demo
  h3 cancelled: deferred by admin: the quarter closes
# With every host deferred no run starts.
> defer h3
  + host-deferred actor=admin host=h3 reason="the quarter closes"
  = done
> trigger r3
  = refused: all 3 hosts that are approved are deferred: `os-upgrade hosts defer --end NAME...` lets one begin again
> end-deferral h2
  + deferral-ended actor=admin host=h2
  = done
> end-deferral h3
  + deferral-ended actor=admin host=h3
  = done
# The end of a deferral is a fact, and is decided only by a clock that is beyond doubt.
> wait 3600
> clock disputed
> tick
> explain h1
  deferred by admin until 2026-11-21T02:00:00Z: the quarter closes | why=host-deferred@2026-11-21T02:00:00Z
> clock trusted
> tick
  + deferral-ended host=h1
# It stays deferred when it is approved, and is not any more once it is withdrawn or removed.
> defer h1
  + host-deferred actor=admin host=h1 reason="the quarter closes"
  = done
> approve h1
  + hosts-approved actor=admin hosts=[h1]
  = done
> explain h1
  deferred by admin: the quarter closes | why=host-deferred
> withdraw h1
  + host-withdrawn actor=admin host=h1 reason=moved
  = done
> approve h1
  + hosts-approved actor=admin hosts=[h1]
  = done
> explain h1
  no run is active; no run starts automatically: no maintenance windows are configured | why=no-run,no-windows
