# Before anything is sent: no fence has been read.
> host h1
> host h2
> host h3
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> trigger r1 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T01:10:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
> wait 599
> tick
> wait 1
> tick
  + r1 h1: timed-out reason=(not-sent action=prepare)
  + r1 h2: timed-out reason=(not-sent action=prepare)
  + r1 h3: timed-out reason=(not-sent action=prepare)
  + run-ended counts=(timed-out=3) result=timed-out run=r1
# While hosts prepare: one is done, one has not answered, one has no command yet. The next input after not-after ends the run.
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r2 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T01:20:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T01:20:00Z, send r2/h2/prepare/1 until 2026-11-21T01:20:00Z, send r2/h3/prepare/1 until 2026-11-21T01:20:00Z
> sent h1 prepare
  + r2 h1: command-sent action=prepare attempt=1 sequence=2
  ! send r2/h2/prepare/1 until 2026-11-21T01:20:00Z, send r2/h3/prepare/1 until 2026-11-21T01:20:00Z
> sent h2 prepare
  + r2 h2: command-sent action=prepare attempt=1 sequence=3
  ! send r2/h3/prepare/1 until 2026-11-21T01:20:00Z
> reply h1 prepare done
  + r2 h1: prepared
> wait 3600
> reply h2 prepare done
  + r2 h2: prepared
  + r2 h1: not-reached reason=(run-timed-out waited-for=(hosts-unprepared host=h3))
  + r2 h2: not-reached reason=(run-timed-out waited-for=(hosts-unprepared host=h3))
  + r2 h3: timed-out reason=(not-sent action=prepare)
  + run-ended counts=(not-reached=2 timed-out=1) result=timed-out run=r2
  ! nothing
> state
  r2 timed-out
  h1 not-reached: the run timed out before its turn: h3 had not answered prepare
  h2 not-reached: the run timed out before its turn: h3 had not answered prepare
  h3 timed-out: prepare could not be sent before not-after
> retracted h2 at=3 given
# While one is upgraded; the clock stepped backwards in between.
> trigger r3 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:20:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T02:20:00Z, send r3/h2/prepare/1 until 2026-11-21T02:20:00Z, send r3/h3/prepare/1 until 2026-11-21T02:20:00Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=6
  + r3 h2: command-sent action=prepare attempt=1 sequence=7
  + r3 h3: command-sent action=prepare attempt=1 sequence=8
  ! nothing
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
> reply h3 prepare done
  + r3 h3: prepared
  + upgrades-began run=r3
  + r3 h1: slot-granted group=default provider=embedded
  ! send r3/h1/upgrade/1 until 2026-11-21T02:20:00Z
> deliver
  + r3 h1: command-sent action=upgrade attempt=1 sequence=12
  ! nothing
> wait -7200
> tick
> wait 7900
> tick
  + r3 h1: timed-out reason=(no-reply action=upgrade)
  + r3 h2: not-reached reason=(run-timed-out waited-for=(host-under-way host=h1))
  + r3 h3: not-reached reason=(run-timed-out waited-for=(host-under-way host=h1))
  + run-ended counts=(not-reached=2 timed-out=1) result=timed-out run=r3
  ! retract 12 of h1
> state
  r3 timed-out
  h1 timed-out: no reply to upgrade before not-after
  h2 not-reached: the run timed out before its turn: h1 was under way
  h3 not-reached: the run timed out before its turn: h1 was under way
  slot h1: begun=true command=(action=upgrade sequence=12) group=default provider=embedded run=r3 since=2026-11-21T02:10:00Z standing=held unsent-at-fence=null
> retracted h1 at=12 given
  + command-retracted deleted=false host=h1 sequence=12
  ! nothing
# While one is rebooted.
> trigger r4 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:31:40Z rollout=() run=r4 trigger=(operator actor=admin)
  = done
  ! send r4/h1/prepare/1 until 2026-11-21T02:31:40Z, send r4/h2/prepare/1 until 2026-11-21T02:31:40Z, send r4/h3/prepare/1 until 2026-11-21T02:31:40Z
> deliver
  + r4 h1: command-sent action=prepare attempt=1 sequence=13
  + r4 h2: command-sent action=prepare attempt=1 sequence=14
  + r4 h3: command-sent action=prepare attempt=1 sequence=15
  ! nothing
> reply h1 prepare done
  + r4 h1: prepared
> reply h2 prepare done
  + r4 h2: prepared
> reply h3 prepare done
  + r4 h3: prepared
  + upgrades-began run=r4
  + r4 h1: slot-granted group=default provider=embedded
  ! send r4/h1/upgrade/1 until 2026-11-21T02:31:40Z
> deliver
  + r4 h1: command-sent action=upgrade attempt=1 sequence=19
  ! nothing
> reply h1 upgrade reboot-required
  + r4 h1: reboot-required
  ! send r4/h1/reboot/1 until 2026-11-21T02:31:40Z
> deliver
  + r4 h1: command-sent action=reboot attempt=1 sequence=21
  ! nothing
> host h1 unreachable
> wait 600
> cancel
  + r4 h1: timed-out reason=(no-reply action=reboot unreachable=true)
  + r4 h2: not-reached reason=(run-timed-out waited-for=(host-under-way host=h1))
  + r4 h3: not-reached reason=(run-timed-out waited-for=(host-under-way host=h1))
  + run-ended counts=(not-reached=2 timed-out=1) result=timed-out run=r4
  = refused: no run is active
  ! retract 21 of h1
> state
  r4 timed-out
  h1 timed-out: no reply to reboot before not-after; it no longer sent heartbeats
  h2 not-reached: the run timed out before its turn: h1 was under way
  h3 not-reached: the run timed out before its turn: h1 was under way
  slot h1: begun=true command=(action=reboot sequence=21) group=default provider=embedded run=r4 since=2026-11-21T02:10:00Z standing=held unsent-at-fence=null
# A request after not-after does not see the expired run; the last reply, read late, completes a run.
> host h1
> retracted h1 at=12 given
> retracted h1 at=21 given
  + command-retracted deleted=false host=h1 sequence=21
  ! nothing
> trigger r5 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:41:40Z rollout=() run=r5 trigger=(operator actor=admin)
  = done
  ! send r5/h1/prepare/1 until 2026-11-21T02:41:40Z, send r5/h2/prepare/1 until 2026-11-21T02:41:40Z, send r5/h3/prepare/1 until 2026-11-21T02:41:40Z
> wait 601
> cancel
  + r5 h1: timed-out reason=(not-sent action=prepare)
  + r5 h2: timed-out reason=(not-sent action=prepare)
  + r5 h3: timed-out reason=(not-sent action=prepare)
  + run-ended counts=(timed-out=3) result=timed-out run=r5
  = refused: no run is active
  ! nothing
> trigger r6 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:51:41Z rollout=() run=r6 trigger=(operator actor=admin)
  = done
  ! send r6/h1/prepare/1 until 2026-11-21T02:51:41Z, send r6/h2/prepare/1 until 2026-11-21T02:51:41Z, send r6/h3/prepare/1 until 2026-11-21T02:51:41Z
> wait 601
> trigger r7 timeout=10m
  + r6 h1: timed-out reason=(not-sent action=prepare)
  + r6 h2: timed-out reason=(not-sent action=prepare)
  + r6 h3: timed-out reason=(not-sent action=prepare)
  + run-ended counts=(timed-out=3) result=timed-out run=r6
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T03:01:42Z rollout=() run=r7 trigger=(operator actor=admin)
  = done
  ! send r7/h1/prepare/1 until 2026-11-21T03:01:42Z, send r7/h2/prepare/1 until 2026-11-21T03:01:42Z, send r7/h3/prepare/1 until 2026-11-21T03:01:42Z
> gone h2
> gone h3
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r7
  + r7 h1: cancelled reason=(run-cancelled actor=admin)
  + r7 h2: cancelled reason=(run-cancelled actor=admin)
  + r7 h3: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=3) result=cancelled run=r7
  = done
  ! nothing
> trigger r8 timeout=10m
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T03:01:42Z rollout=() run=r8 trigger=(operator actor=admin)
  = done
  ! send r8/h1/prepare/1 until 2026-11-21T03:01:42Z
> deliver
  + r8 h1: command-sent action=prepare attempt=1 sequence=22
  ! nothing
> reply h1 prepare done
  + r8 h1: prepared
  + upgrades-began run=r8
  + r8 h1: slot-granted group=default provider=embedded
  ! send r8/h1/upgrade/1 until 2026-11-21T03:01:42Z
> deliver
  + r8 h1: command-sent action=upgrade attempt=1 sequence=24
  ! nothing
> wait 601
> reply h1 upgrade done
  + r8 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(upgraded=1) result=completed run=r8
