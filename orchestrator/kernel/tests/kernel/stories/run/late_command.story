# An upgrade and a prepare appear after the end of their run: the slot is held for the upgrade, both are retracted.
> host h1
> host h2
> host h3
> put-config debian rollout/max-concurrent=2
  + config-replaced actor=admin config=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> settings embedded default:2
  + settings-adopted settings=(auto-approve=true groups=(default=2))
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z, send r1/h3/prepare/1 until 2026-11-21T02:00:00Z
> sent h1 prepare
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! send r1/h2/prepare/1 until 2026-11-21T02:00:00Z, send r1/h3/prepare/1 until 2026-11-21T02:00:00Z
> sent h2 prepare
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! send r1/h3/prepare/1 until 2026-11-21T02:00:00Z
> sent h3 prepare
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
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T02:00:00Z, send r1/h2/upgrade/1 until 2026-11-21T02:00:00Z
> wait 4000
> tick
  + r1 h1: timed-out reason=(not-sent action=upgrade)
  + r1 h2: timed-out reason=(not-sent action=upgrade)
  + r1 h3: not-reached reason=(run-timed-out waited-for=(host-under-way host=h1 others=1))
  + run-ended counts=(not-reached=1 timed-out=2) result=timed-out run=r1
  ! new fence above 1
> sent h1 upgrade run=r1
  + late-command-seen action=upgrade host=h1 sequence=8
  ! new fence above 1, retract 8 of h1
> sent h1 upgrade run=r1 attempt=2
  + ignored host=h1 reply=null sequence=9 why=foreign-command
> sent h3 upgrade run=r1
  + ignored host=h3 reply=null sequence=10 why=foreign-command
> fence
  + fenced leader=one sequence=11
  + fence-passed sequence=11
  + slot-released host=h2 why=never-sent
  ! retract 8 of h1
> state
  r1 timed-out
  h1 timed-out: upgrade could not be sent before not-after
  h2 timed-out: upgrade could not be sent before not-after
  h3 not-reached: the run timed out before its turn: h1 and 1 other host were under way
  slot h1: begun=true command=(action=upgrade sequence=8) group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> retracted h1 at=8 given
  + command-retracted deleted=false host=h1 sequence=8
  ! nothing
> retracted h1 at=8 given
> reply h1 upgrade to=8 reboot-required
  + ignored host=h1 reply=(action=upgrade result=reboot-required) sequence=12 why=nothing-outstanding
> reply h1 upgrade to=8 done
  + slot-released host=h1 why=late-done
> state
  r1 timed-out
  h1 timed-out: upgrade could not be sent before not-after
  h2 timed-out: upgrade could not be sent before not-after
  h3 not-reached: the run timed out before its turn: h1 and 1 other host were under way
> wait 600
> trigger r2 timeout=1m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:17:40Z rollout=(max-concurrent=2) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T02:17:40Z, send r2/h2/prepare/1 until 2026-11-21T02:17:40Z, send r2/h3/prepare/1 until 2026-11-21T02:17:40Z
> wait 60
> tick
  + r2 h1: timed-out reason=(not-sent action=prepare)
  + r2 h2: timed-out reason=(not-sent action=prepare)
  + r2 h3: timed-out reason=(not-sent action=prepare)
  + run-ended counts=(timed-out=3) result=timed-out run=r2
  ! nothing
> sent h1 prepare run=r2
  + late-command-seen action=prepare host=h1 sequence=14
  ! retract 14 of h1
> retracted h1 at=14 deleted
  + command-retracted deleted=true host=h1 sequence=14
  ! nothing
