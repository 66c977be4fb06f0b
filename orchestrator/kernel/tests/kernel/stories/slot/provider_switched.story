# The provider of slots is changed while a slot is requested, and back again.
> host h1
> host h2
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> explain h2
  waiting for its turn: h1 is first: asking for a slot of group default | status=prepared | since=2026-11-21T01:00:00Z | why=host-first@2026-11-21T05:00:00Z
# The requested slot is released before the embedded semaphore is used; a late answer grants no slot.
> settings embedded default:1
  + settings-adopted settings=(auto-approve=true)
  + slot-release-due host=h1 why=not-needed
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z, unlock h1 of default
> explain h1
  waiting until its earlier slot has been given back | status=waiting | since=2026-11-21T01:00:00Z | why=earlier-slot@2026-11-21T05:00:00Z | in-run=earlier-slot
> locked h1 granted
> tick
> unlocked h1 denied
  + slot-release-refused host=h1 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
# Back to the lock server: a host under way keeps its slot, the next host's slot is requested there.
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> state
  r1 active
  h1 waiting
  h2 upgraded
  slot h1: begun=false command=null group=default provider=external run=r1 since=2026-11-21T01:00:00Z standing=requested unsent-at-fence=null
# No slot is free at the embedded semaphore, so the host waits; then its slot is requested from the lock server.
> settings embedded default:0
  + settings-adopted settings=(auto-approve=true groups=(default=0))
  + slot-release-due host=h1 why=not-needed
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! nothing
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> locked h1 granted
  + r1 h1: slot-granted group=default provider=external
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-release-due host=h1 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r1
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=upgraded
  ! nothing
> state
  r1 completed
  h1 upgraded
  h2 upgraded
