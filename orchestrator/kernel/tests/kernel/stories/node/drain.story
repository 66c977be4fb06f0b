# The node of a host is cordoned and drained before its upgrade, and uncordoned after it. The slot is held meanwhile.
> settings kubernetes default:1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> host h2
> node h1
> node h2
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
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
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> explain h1
  its node is being checked before its drain since 2026-11-21T01:00:00Z | status=draining | since=2026-11-21T01:00:00Z | why=node-under-way@2026-11-21T05:00:00Z | in-run=node-under-way
> cluster h1 clear
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=eviction-began
  ! evict from cordoned h1 under 1
> cluster h1 remaining db-0
  + node host=h1 step=(waiting waits=(pods pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])))
# A pod that stays for the same reason is recorded once.
> cluster h1 remaining db-0
> explain h1
  its node is being drained since 2026-11-21T01:00:00Z: pod shop/db-0 is kept by the budget db, since 2026-11-21T01:00:00Z | status=draining | since=2026-11-21T01:00:00Z | why=node-under-way@2026-11-21T05:00:00Z | in-run=node-under-way
> cluster h1 drained boot=a1
  + node host=h1 step=(drained boot-id=a1)
  + r1 h1: drained
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
# Before the reboot the node is looked at once more: somebody may have made it schedulable.
> reply h1 upgrade reboot-required
  + r1 h1: reboot-required
  ! evict from ours h1 under 1
> explain h1
  its node is being drained once more before the reboot since 2026-11-21T01:00:00Z | status=rebooting | since=2026-11-21T01:00:00Z | why=node-under-way@2026-11-21T05:00:00Z | in-run=node-under-way
> cluster h1 remaining late-0
  + node host=h1 step=(waiting waits=(pods pods=(count=1 first=[(name=late-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])))
> cluster h1 drained boot=a1
  + node host=h1 step=(drained boot-id=a1)
  ! send r1/h1/reboot/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=reboot attempt=1 sequence=8
  ! nothing
> reply h1 reboot done
  + r1 h1: recovering
  + node host=h1 step=(uncordon-due release=upgraded)
  ! uncordon ready after a1 h1 under 1
> cluster h1 not-ready
  + node host=h1 step=(waiting waits=not-ready)
> explain h1
  its node is being uncordoned since 2026-11-21T01:00:00Z: its node is not ready, or is still in its old boot | status=recovering | since=2026-11-21T01:00:00Z | why=node-under-way@2026-11-21T05:00:00Z | in-run=node-under-way
> cluster h1 unreachable
  + node host=h1 step=(waiting waits=(unreachable why=timed-out))
# A further reply changes nothing.
> reply h1 reboot error
  + ignored host=h1 reply=(action=reboot result=error) sequence=10 why=already-answered
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h2: slot-granted drain=true group=default provider=embedded
  ! check h2 under 1
> cluster h2 drained boot=a2
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=(drained boot-id=a2)
  + r1 h2: drained
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=11
  ! nothing
> reply h2 upgrade done
  + r1 h2: recovering
  + node host=h2 step=(uncordon-due release=upgraded)
  ! uncordon ready h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r1
  ! nothing
> state
  r1 completed
  h1 upgraded
  h2 upgraded
