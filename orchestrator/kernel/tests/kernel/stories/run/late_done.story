# Only `done` to the very command for which a slot is held releases it, in the run or after it.
> host h1
> host h2
> host h3
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
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h1 upgrade broken pipe
  + r1 h1: failed reason=(worker-error action=upgrade message="broken pipe")
  + run-stopping cause=(failed host=h1) run=r1
  + r1 h2: not-reached reason=(run-failed host=h1)
  + r1 h3: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=2) result=failed run=r1
> reply h1 upgrade to=7 done
  + ignored host=h1 reply=(action=upgrade result=done) sequence=10 why=nothing-outstanding
> reply h1 upgrade to=8 done
  + slot-released host=h1 why=late-done
> state
  r1 failed
  h1 failed: upgrade failed: broken pipe
  h2 not-reached: the run was ended by the failure of h1
  h3 not-reached: the run was ended by the failure of h1
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T02:00:00Z, send r2/h2/prepare/1 until 2026-11-21T02:00:00Z, send r2/h3/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=12
  + r2 h2: command-sent action=prepare attempt=1 sequence=13
  + r2 h3: command-sent action=prepare attempt=1 sequence=14
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
  + upgrades-began run=r2
  + r2 h2: slot-granted group=default provider=embedded
  ! send r2/h2/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r2 h2: command-sent action=upgrade attempt=1 sequence=18
  ! nothing
> reply h2 upgrade reboot-required
  + r2 h2: reboot-required
  ! send r2/h2/reboot/1 until 2026-11-21T02:00:00Z
> deliver
  + r2 h2: command-sent action=reboot attempt=1 sequence=20
  ! nothing
> wait 3600
> tick
  + r2 h1: not-reached reason=(run-timed-out waited-for=(host-under-way host=h2))
  + r2 h2: timed-out reason=(no-reply action=reboot)
  + r2 h3: not-reached reason=(run-timed-out waited-for=(host-under-way host=h2))
  + run-ended counts=(not-reached=2 timed-out=1) result=timed-out run=r2
  ! retract 20 of h2
> retracted h2 at=20 given
  + command-retracted deleted=false host=h2 sequence=20
  ! nothing
# To the upgrade that asked for the reboot: no. An error to the reboot: no. A reply without the header: yes.
> reply h2 upgrade to=18 done
  + ignored host=h2 reply=(action=upgrade result=done) sequence=21 why=nothing-outstanding
> reply h2 reboot to=20 the host did not come back
> reply h2 reboot done
  + slot-released host=h2 why=late-done
> state
  r2 timed-out
  h1 not-reached: the run timed out before its turn: h2 was under way
  h2 timed-out: no reply to reboot before not-after
  h3 not-reached: the run timed out before its turn: h2 was under way
# In the next run, before its turn.
> trigger r3 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T03:00:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T03:00:00Z, send r3/h2/prepare/1 until 2026-11-21T03:00:00Z, send r3/h3/prepare/1 until 2026-11-21T03:00:00Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=24
  + r3 h2: command-sent action=prepare attempt=1 sequence=25
  + r3 h3: command-sent action=prepare attempt=1 sequence=26
  ! nothing
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
> reply h3 prepare done
  + r3 h3: prepared
  + upgrades-began run=r3
  + r3 h3: slot-granted group=default provider=embedded
  ! send r3/h3/upgrade/1 until 2026-11-21T03:00:00Z
> deliver
  + r3 h3: command-sent action=upgrade attempt=1 sequence=30
  ! nothing
> wait 3600
> tick
  + r3 h1: not-reached reason=(run-timed-out waited-for=(host-under-way host=h3))
  + r3 h2: not-reached reason=(run-timed-out waited-for=(host-under-way host=h3))
  + r3 h3: timed-out reason=(no-reply action=upgrade)
  + run-ended counts=(not-reached=2 timed-out=1) result=timed-out run=r3
  ! retract 30 of h3
> retracted h3 at=30 given
  + command-retracted deleted=false host=h3 sequence=30
  ! nothing
> trigger r4
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T07:00:00Z rollout=() run=r4 trigger=(operator actor=admin)
  = done
  ! send r4/h1/prepare/1 until 2026-11-21T07:00:00Z, send r4/h2/prepare/1 until 2026-11-21T07:00:00Z, send r4/h3/prepare/1 until 2026-11-21T07:00:00Z
> deliver
  + r4 h1: command-sent action=prepare attempt=1 sequence=31
  + r4 h2: command-sent action=prepare attempt=1 sequence=32
  + r4 h3: command-sent action=prepare attempt=1 sequence=33
  ! nothing
> reply h3 upgrade to=30 done
  + slot-released host=h3 why=late-done
  + ignored host=h3 reply=(action=upgrade result=done) sequence=34 why=(too-late run=r3)
> state
  r4 active
  h1 preparing
  h2 preparing
  h3 preparing
