# Slots of two groups are requested at once, and one host may be under way: the later grant is released.
> host h1
> host h2 group=edge
> host h3 group=edge
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=edge host=h2) (application=debian group=edge host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
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
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  + slot-requested group=edge host=h2 run=r1
  + r1 h2: waiting reason=(asking-for-slot group=edge)
  ! lock h1 of default, lock h2 of edge
> locked h2 granted
  + r1 h2: slot-granted group=edge provider=external
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> locked h1 granted
  + r1 h1: turn-lost
  + slot-release-due host=h1 why=not-needed
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z, unlock h1 of default
> explain h1
  waiting until its earlier slot has been given back | status=prepared | since=2026-11-21T01:00:00Z | why=earlier-slot@2026-11-21T05:00:00Z
> explain h3
  waiting for its turn: h2 is under way | status=prepared | since=2026-11-21T01:00:00Z | why=host-under-way@2026-11-21T05:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=8
  ! unlock h1 of default
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-release-due host=h2 why=upgraded
  + slot-requested group=edge host=h3 run=r1
  + r1 h3: waiting reason=(asking-for-slot group=edge)
  ! lock h3 of edge, unlock h1 of default, unlock h2 of edge
# h1's slot is requested again once it is released.
> explain h1
  waiting until its earlier slot has been given back | status=prepared | since=2026-11-21T01:00:00Z | why=earlier-slot@2026-11-21T05:00:00Z
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default, lock h3 of edge, unlock h2 of edge
> locked h1 denied
  + slot-refused host=h1 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
> locked h3 granted
  + r1 h3: slot-granted group=edge provider=external
  ! send r1/h3/upgrade/1 until 2026-11-21T05:00:00Z, unlock h2 of edge
# The run ends while a slot is requested: it is released.
> wait 20000
> tick
  + r1 h1: not-reached reason=(run-timed-out waited-for=(host-under-way host=h3))
  + slot-release-due host=h1 why=not-needed
  + r1 h3: timed-out reason=(not-sent action=upgrade)
  + run-ended counts=(not-reached=1 timed-out=1 upgraded=1) result=timed-out run=r1
  ! unlock h1 of default, unlock h2 of edge, new fence above 1
> locked h1 granted
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! unlock h2 of edge, new fence above 1
> unlocked h2 granted
  + slot-released host=h2 why=upgraded
  ! new fence above 1
> fence
  + fenced leader=one sequence=10
  + fence-passed sequence=10
  + slot-release-due host=h3 why=never-sent
  ! unlock h3 of edge
> unlocked h3 granted
  + slot-released host=h3 why=never-sent
  ! nothing
> state
  r1 timed-out
  h1 not-reached: the run timed out before its turn: h3 was under way
  h2 upgraded
  h3 timed-out: upgrade could not be sent before not-after
