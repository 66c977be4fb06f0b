# A run of chosen hosts has them alone, and ends when the next one starts automatically.
> host h1
> host h2
> host h3
> host h4
> put-config debian maintenance-windows=Saturday~03:00~4h rollout/max-failures=4 rollout/max-concurrent=4
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=03:00 timezone=site-local)] rollout=(max-concurrent=4 max-failures=4) worker-applications=[(name=debian)]) difference=[(after=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=03:00 timezone=site-local)] rollout=(max-concurrent=4 max-failures=4) worker-applications=[(name=debian)]) path=)]
  = created
> settings default:4
  + settings-adopted settings=(auto-approve=true groups=(default=4))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> withdraw h4
  + host-withdrawn actor=admin host=h4 reason=moved
  = done
> defer h3
  + host-deferred actor=admin host=h3 reason="the quarter closes"
  = done
> trigger r0 hosts=h1,h3,h4,nobody
  = refused: hosts: h3 is deferred, h4 is withdrawn, nobody has no worker of a configured application; nothing is started
> trigger r0 retry=failed
  = refused: no host that can take part has failed or timed out since it was upgraded last: `os-upgrade hosts list` shows how each ended
> trigger r0 hosts=h2,h1,h2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T03:00:00Z rollout=(max-concurrent=4 max-failures=4) run=r0 trigger=(operator actor=admin targeted=true)
  = done
  ! send r0/h1/prepare/1 until 2026-11-21T03:00:00Z, send r0/h2/prepare/1 until 2026-11-21T03:00:00Z
> deliver
  + r0 h1: command-sent action=prepare attempt=1 sequence=2
  + r0 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r0 h1: prepared
> reply h2 prepare done
  + r0 h2: prepared
  + upgrades-began run=r0
  + r0 h1: slot-granted group=default provider=embedded
  + r0 h2: slot-granted group=default provider=embedded
  ! send r0/h1/upgrade/1 until 2026-11-21T03:00:00Z, send r0/h2/upgrade/1 until 2026-11-21T03:00:00Z
> deliver
  + r0 h1: command-sent action=upgrade attempt=1 sequence=6
  + r0 h2: command-sent action=upgrade attempt=1 sequence=7
  ! nothing
> reply h1 upgrade done
  + r0 h1: upgraded
  + slot-released host=h1 why=upgraded
> reply h2 upgrade error it-broke
  + r0 h2: failed reason=(worker-error action=upgrade message="error it-broke")
  + run-ended counts=(failed=1 upgraded=1) result=completed run=r0
> state
  r0 completed
  h1 upgraded
  h2 failed: upgrade failed: error it-broke
  slot h2: begun=true command=(action=upgrade sequence=7) failed=true group=default provider=embedded run=r0 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
# Of those that are named, the ones that failed.
> end-deferral h3
  + deferral-ended actor=admin host=h3
  = done
> trigger r1 retry=failed hosts=h3,h1
  = refused: no host that can take part has failed or timed out since it was upgraded last: `os-upgrade hosts list` shows how each ended
> trigger r1 hosts=h2,h3 timeout=4h
  + run-started hosts=[(application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=4 max-failures=4) run=r1 trigger=(operator actor=admin targeted=true)
  = done
  ! send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=prepare attempt=1 sequence=10
  + r1 h3: command-sent action=prepare attempt=1 sequence=11
  ! nothing
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
  + upgrades-began run=r1
  + r1 h3: slot-granted group=default provider=embedded
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z, send r1/h3/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=14
  + r1 h3: command-sent action=upgrade attempt=1 sequence=15
  ! nothing
> reply h3 upgrade done
  + r1 h3: upgraded
  + slot-released host=h3 why=upgraded
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r1
# One that was upgraded since is none of them.
> trigger r2 retry=failed
  = refused: no host that can take part has failed or timed out since it was upgraded last: `os-upgrade hosts list` shows how each ended
> trigger r2 retry=not-reached
  = refused: no host that can take part was not reached in its last run: `os-upgrade hosts list` shows how each ended
> trigger r2 timeout=0s hosts=h1
  = refused: timeout: must be at least 1s
> state
  r1 completed
  h2 upgraded
  h3 upgraded
# What is left until the next start may be too short for a host.
> put-config debian maintenance-windows=Saturday~03:00~4h rollout/expected-duration=2h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=03:00 timezone=site-local)] rollout=(expected-duration=2h) worker-applications=[(name=debian)]) difference=[(after=1 before=4 path=rollout/max-concurrent) (after=0 before=4 path=rollout/max-failures) (after=2h path=rollout/expected-duration)]
  = done
> trigger r2 hosts=h1
  = refused: timeout: a host takes 2h (rollout.expected-duration), so that none would be begun: write more than that
> trigger r2 hosts=h1 timeout=3h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T04:00:00Z rollout=(expected-duration=2h) run=r2 trigger=(operator actor=admin targeted=true)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T04:00:00Z
