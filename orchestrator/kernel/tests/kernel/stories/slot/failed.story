# Of hosts whose worker answered an error, and that are heard, as many as the settings say keep no other host of a run from its slot.
> settings embedded default:1+1
  + settings-adopted settings=(auto-approve=true failed=(default=1))
> host h1 reachable
> host h2 reachable
> host h3 reachable
> put-config debian rollout/max-failures=3
  + config-replaced actor=admin config=(rollout=(max-failures=3) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-failures=3) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-failures=3) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> sent h1 upgrade
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h1 upgrade oops
  + r1 h1: failed reason=(worker-error action=upgrade message=oops)
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
# FleetLock clients do not get that slot.
> lock default n1
  + lock-awaited actor=admin group=default id=n1
  = refused: there is 1 slot, and 2 are held by h1 since 2026-11-21T01:00:00Z, h2 since 2026-11-21T01:00:00Z
> unlock default n1
  + lock-wait-ended actor=admin group=default id=n1
  = done
> sent h2 upgrade
  + r1 h2: command-sent action=upgrade attempt=1 sequence=10
  ! nothing
# The second that fails counts.
> reply h2 upgrade oops
  + r1 h2: failed reason=(worker-error action=upgrade message=oops)
  + r1 h3: waiting reason=(slot-denied denial=(full held=2 holders=[(id=h1 since=2026-11-21T01:00:00Z) (id=h2 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
> explain h3
  denied a slot of group default: there is 1 slot, and 2 are held by h1 since 2026-11-21T01:00:00Z, h2 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full); h1: upgrade failed: oops | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z,slot-stuck | in-run=slot-denied
# Once it is silent, the first one counts too.
> host h1 unreachable
> release default h2 mended
  + slot-released host=h2 why=operator
  + holder-released actor=admin group=default id=h2 reason=mended
  = done
> host h1 reachable
> tick
  + r1 h3: slot-granted group=default provider=embedded
  ! send r1/h3/upgrade/1 until 2026-11-21T05:00:00Z
> sent h3 upgrade
  + r1 h3: command-sent action=upgrade attempt=1 sequence=12
  ! nothing
> reply h3 upgrade done
  + r1 h3: upgraded
  + slot-released host=h3 why=upgraded
  + run-ended counts=(failed=2 upgraded=1) result=completed run=r1
# In the next run it needs a slot like any other, and counts from then on.
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-failures=3) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z, send r2/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=14
  + r2 h2: command-sent action=prepare attempt=1 sequence=15
  + r2 h3: command-sent action=prepare attempt=1 sequence=16
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
  + upgrades-began run=r2
  + r2 h1: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T05:00:00Z
> explain h1
  its upgrade command is about to be sent | status=upgrading | since=2026-11-21T01:00:00Z | why=command-unsent@2026-11-21T05:00:00Z
> sent h1 upgrade
  + r2 h1: command-sent action=upgrade attempt=1 sequence=20
  ! nothing
# Its own counts again.
> explain h2
  waiting for its turn: h1 is under way | status=prepared | since=2026-11-21T01:00:00Z | why=host-under-way@2026-11-21T05:00:00Z
> reply h1 upgrade done
  + r2 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r2 h2: slot-granted group=default provider=embedded
  ! send r2/h2/upgrade/1 until 2026-11-21T05:00:00Z
> sent h2 upgrade
  + r2 h2: command-sent action=upgrade attempt=1 sequence=22
  ! nothing
# A reboot that left the host unhealthy counts.
> reply h2 upgrade reboot-required
  + r2 h2: reboot-required
  ! send r2/h2/reboot/1 until 2026-11-21T05:00:00Z
> sent h2 reboot
  + r2 h2: command-sent action=reboot attempt=1 sequence=24
  ! nothing
> reply h2 reboot unhealthy: nginx is down
  + r2 h2: failed reason=(unhealthy message="nginx is down")
  + r2 h3: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h2 since=2026-11-21T01:00:00Z)] provider=embedded slots=1) group=default)
> explain h3
  denied a slot of group default: the only slot is held by h2 since 2026-11-21T01:00:00Z (failed_lock_semaphore_full); h2: not healthy after its reboot: nginx is down | status=waiting | since=2026-11-21T01:00:00Z | why=slot-denied@2026-11-21T05:00:00Z,slot-stuck | in-run=slot-denied
> state
  r2 active
  h1 upgraded
  h2 failed: not healthy after its reboot: nginx is down
  h3 waiting
  slot h2: begun=true command=(action=reboot sequence=24) group=default provider=embedded run=r2 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
