# A host that does not come back from its reboot is given up after `boot-timeout`, long before the run's end.
> host h1
> host h2
> put-config debian rollout/boot-timeout=0s
  = refused: rollout/boot-timeout: must be at least 1s; a run never lasts beyond its not-after, whatever this is
> put-config debian rollout/boot-timeout=10m
  + config-replaced actor=admin config=(rollout=(boot-timeout=10m) worker-applications=[(name=debian)]) difference=[(after=(rollout=(boot-timeout=10m) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=2h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T03:00:00Z rollout=(boot-timeout=10m) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T03:00:00Z, send r1/h2/prepare/1 until 2026-11-21T03:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T03:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> reply h1 upgrade reboot-required
  + r1 h1: reboot-required
  ! send r1/h1/reboot/1 until 2026-11-21T03:00:00Z
# The time begins when the command is seen in the stream.
> wait 900
> tick
> deliver
  + r1 h1: command-sent action=reboot attempt=1 sequence=8
  ! nothing
> wait 599
> tick
> explain h1
  its worker has not answered reboot yet | status=rebooting | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T01:25:00Z
# While replies may be unread, a missing reply means nothing.
> control-unread
> wait 1
> tick
> control-read
> tick
  + r1 h1: timed-out reason=(boot-timeout after=10m)
  + run-stopping cause=(failed host=h1) run=r1
  + r1 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(not-reached=1 timed-out=1) result=failed run=r1
  ! retract 8 of h1
> state
  r1 failed
  h1 timed-out: no reply to reboot within 10m (boot-timeout): it may have hung while booting
  h2 not-reached: the run was ended by the failure of h1
  slot h1: begun=true command=(action=reboot sequence=8) group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
# Its command is retracted, and its slot stays held until it answers `done`.
> retracted h1 at=8 given
  + command-retracted deleted=false host=h1 sequence=8
  ! nothing
> reply h1 reboot done
  + slot-released host=h1 why=late-done
  + ignored host=h1 reply=(action=reboot result=done) sequence=9 why=(too-late run=r1)
# The time of the upgrade does not count, and a host that answers in time is not affected.
> put-config debian rollout/boot-timeout=10m rollout/max-failures=1
  + config-replaced actor=admin config=(rollout=(boot-timeout=10m max-failures=1) worker-applications=[(name=debian)]) difference=[(after=1 before=0 path=rollout/max-failures)]
  = done
> settings embedded release default:1
  + settings-adopted settings=(auto-approve=true on-failure=release)
> trigger r2 timeout=4h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:25:00Z rollout=(boot-timeout=10m max-failures=1) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:25:00Z, send r2/h2/prepare/1 until 2026-11-21T05:25:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=10
  + r2 h2: command-sent action=prepare attempt=1 sequence=11
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
  + r2 h2: slot-granted group=default provider=embedded
  ! send r2/h2/upgrade/1 until 2026-11-21T05:25:00Z
> deliver
  + r2 h2: command-sent action=upgrade attempt=1 sequence=14
  ! nothing
> wait 3600
> tick
> reply h2 upgrade reboot-required
  + r2 h2: reboot-required
  ! send r2/h2/reboot/1 until 2026-11-21T05:25:00Z
> deliver
  + r2 h2: command-sent action=reboot attempt=1 sequence=16
  ! nothing
> wait 600
> tick
  + r2 h2: timed-out reason=(boot-timeout after=10m)
  + r2 h1: waiting reason=(slot-denied denial=(full held=1 holders=[(id=h2 since=2026-11-21T01:25:00Z)] provider=embedded slots=1) group=default)
  ! retract 16 of h2
# With `on-failure = release` its slot is released once the command can no longer reach it.
> retracted h2 at=16 deleted
  + command-retracted deleted=true host=h2 sequence=16
  + slot-released host=h2 why=failed
  + r2 h1: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T05:25:00Z
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=17
  ! nothing
> reply h1 upgrade reboot-required
  + r2 h1: reboot-required
  ! send r2/h1/reboot/1 until 2026-11-21T05:25:00Z
> deliver
  + r2 h1: command-sent action=reboot attempt=1 sequence=19
  ! nothing
> wait 599
> tick
> reply h1 reboot done
  + r2 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(timed-out=1 upgraded=1) result=completed run=r2
> state
  r2 completed
  h1 upgraded
  h2 timed-out: no reply to reboot within 10m (boot-timeout): it may have hung while booting
# It answers before its command was retracted, and is upgraded in the next run: the slot is held for that one by then.
> put-config debian rollout/boot-timeout=10m rollout/max-failures=0
  + config-replaced actor=admin config=(rollout=(boot-timeout=10m) worker-applications=[(name=debian)]) difference=[(after=0 before=1 path=rollout/max-failures)]
  = done
> trigger r3 timeout=4h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T06:44:59Z rollout=(boot-timeout=10m) run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T06:44:59Z, send r3/h2/prepare/1 until 2026-11-21T06:44:59Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=21
  + r3 h2: command-sent action=prepare attempt=1 sequence=22
  ! nothing
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
  + upgrades-began run=r3
  + r3 h1: slot-granted group=default provider=embedded
  ! send r3/h1/upgrade/1 until 2026-11-21T06:44:59Z
> deliver
  + r3 h1: command-sent action=upgrade attempt=1 sequence=25
  ! nothing
> reply h1 upgrade reboot-required
  + r3 h1: reboot-required
  ! send r3/h1/reboot/1 until 2026-11-21T06:44:59Z
> deliver
  + r3 h1: command-sent action=reboot attempt=1 sequence=27
  ! nothing
> wait 600
> tick
  + r3 h1: timed-out reason=(boot-timeout after=10m)
  + run-stopping cause=(failed host=h1) run=r3
  + r3 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(not-reached=1 timed-out=1) result=failed run=r3
  ! retract 27 of h1
> trigger r4 timeout=4h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T06:54:59Z rollout=(boot-timeout=10m) run=r4 trigger=(operator actor=admin)
  = done
  ! send r4/h1/prepare/1 until 2026-11-21T06:54:59Z, send r4/h2/prepare/1 until 2026-11-21T06:54:59Z, retract 27 of h1
> deliver
  + r4 h1: command-sent action=prepare attempt=1 sequence=28
  + r4 h2: command-sent action=prepare attempt=1 sequence=29
  ! retract 27 of h1
> reply h1 prepare done
  + r4 h1: prepared
> reply h2 prepare done
  + r4 h2: prepared
  + upgrades-began run=r4
  + r4 h1: slot-granted group=default provider=embedded
  ! send r4/h1/upgrade/1 until 2026-11-21T06:54:59Z, retract 27 of h1
> retracted h1 at=27 given
  + command-retracted deleted=false host=h1 sequence=27
  ! send r4/h1/upgrade/1 until 2026-11-21T06:54:59Z
> state
  r4 active
  h1 upgrading
  h2 prepared
  slot h1: begun=true command=(action=reboot sequence=27) group=default provider=embedded run=r4 since=2026-11-21T02:44:59Z standing=held unsent-at-fence=null
