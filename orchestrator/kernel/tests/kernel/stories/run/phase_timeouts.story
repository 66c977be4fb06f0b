# A host that takes too long to prepare counts as failed; one that takes too long to upgrade is overdue, and the run goes on without it.
> settings default:4
  + settings-adopted settings=(auto-approve=true groups=(default=4))
> host h1
> host h2
> host h3
> host h4
> put-config debian rollout/prepare-timeout=0s
  = refused: rollout/prepare-timeout: must be at least 1s, or left out
> put-config debian rollout/upgrade-timeout=0s
  = refused: rollout/upgrade-timeout: must be at least 1s, or left out
> put-config debian rollout/prepare-timeout=5m rollout/upgrade-timeout=30m rollout/max-failures=2 rollout/boot-timeout=10m
  + config-replaced actor=admin config=(rollout=(boot-timeout=10m max-failures=2 prepare-timeout=5m upgrade-timeout=30m) worker-applications=[(name=debian)]) difference=[(after=(rollout=(boot-timeout=10m max-failures=2 prepare-timeout=5m upgrade-timeout=30m) worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=2h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T03:00:00Z rollout=(boot-timeout=10m max-failures=2 prepare-timeout=5m upgrade-timeout=30m) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T03:00:00Z, send r1/h2/prepare/1 until 2026-11-21T03:00:00Z, send r1/h3/prepare/1 until 2026-11-21T03:00:00Z, send r1/h4/prepare/1 until 2026-11-21T03:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  + r1 h4: command-sent action=prepare attempt=1 sequence=5
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
# h4 does not answer, and holds up the others no longer than prepare-timeout.
> wait 299
> tick
> explain h4
  its worker has not answered prepare yet | status=preparing | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T01:05:00Z
> wait 1
> control-unread
> tick
> control-read
> tick
  + r1 h4: timed-out reason=(prepare-timeout after=5m)
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T03:00:00Z, retract 5 of h4
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=9
  ! retract 5 of h4
# h1 does not answer `upgrade`: h2 goes on beside it, and h1 keeps its slot.
> wait 1800
> tick
  + r1 h1: overdue after=30m
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T03:00:00Z, retract 5 of h4
> explain h1
  no reply to upgrade within 30m (upgrade-timeout): it may still be at work; its worker has not answered upgrade yet | status=upgrading | since=2026-11-21T01:05:00Z | why=upgrade-timeout,reply-awaited@2026-11-21T03:00:00Z | in-run=upgrade-timeout
> explain h2
  its upgrade command is about to be sent | status=upgrading | since=2026-11-21T01:35:00Z | why=command-unsent@2026-11-21T03:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=10
  ! retract 5 of h4
# It may still answer. Its reboot is watched like another one's.
> reply h1 upgrade reboot-required
  + r1 h1: reboot-required
  ! send r1/h1/reboot/1 until 2026-11-21T03:00:00Z, retract 5 of h4
> deliver
  + r1 h1: command-sent action=reboot attempt=1 sequence=12
  ! retract 5 of h4
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + r1 h3: slot-granted group=default provider=embedded
  ! send r1/h3/upgrade/1 until 2026-11-21T03:00:00Z, retract 5 of h4
> deliver
  + r1 h3: command-sent action=upgrade attempt=1 sequence=14
  ! retract 5 of h4
> reply h1 reboot done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
> state
  r1 active
  h1 upgraded
  h2 upgraded
  h3 upgrading
  h4 timed-out: no reply to prepare within 5m (prepare-timeout)
  slot h3: begun=true command=(action=upgrade sequence=14) group=default provider=embedded run=r1 since=2026-11-21T01:35:00Z standing=held unsent-at-fence=null
> reply h3 upgrade done
  + r1 h3: upgraded
  + slot-released host=h3 why=upgraded
  + run-ended counts=(timed-out=1 upgraded=3) result=completed run=r1
> state
  r1 completed
  h1 upgraded
  h2 upgraded
  h3 upgraded
  h4 timed-out: no reply to prepare within 5m (prepare-timeout)
# The run ends once only hosts that are overdue are left.
> put-config debian rollout/upgrade-timeout=30m rollout/max-failures=2 rollout/max-concurrent=4
  + config-replaced actor=admin config=(rollout=(max-concurrent=4 max-failures=2 upgrade-timeout=30m) worker-applications=[(name=debian)]) difference=[(after=30m before=10m path=rollout/boot-timeout) (after=4 before=1 path=rollout/max-concurrent) (before=5m path=rollout/prepare-timeout)]
  = done
> trigger r2 timeout=2h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T03:35:00Z rollout=(max-concurrent=4 max-failures=2 upgrade-timeout=30m) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T03:35:00Z, send r2/h2/prepare/1 until 2026-11-21T03:35:00Z, send r2/h3/prepare/1 until 2026-11-21T03:35:00Z, send r2/h4/prepare/1 until 2026-11-21T03:35:00Z, retract 5 of h4
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=17
  + r2 h2: command-sent action=prepare attempt=1 sequence=18
  + r2 h3: command-sent action=prepare attempt=1 sequence=19
  + r2 h4: command-sent action=prepare attempt=1 sequence=20
  ! retract 5 of h4
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
> reply h4 prepare done
  + r2 h4: prepared
  + upgrades-began run=r2
  + r2 h4: slot-granted group=default provider=embedded
  + r2 h1: slot-granted group=default provider=embedded
  + r2 h2: slot-granted group=default provider=embedded
  + r2 h3: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T03:35:00Z, send r2/h2/upgrade/1 until 2026-11-21T03:35:00Z, send r2/h3/upgrade/1 until 2026-11-21T03:35:00Z, send r2/h4/upgrade/1 until 2026-11-21T03:35:00Z, retract 5 of h4
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=25
  + r2 h2: command-sent action=upgrade attempt=1 sequence=26
  + r2 h3: command-sent action=upgrade attempt=1 sequence=27
  + r2 h4: command-sent action=upgrade attempt=1 sequence=28
  ! retract 5 of h4
> reply h1 upgrade done
  + r2 h1: upgraded
  + slot-released host=h1 why=upgraded
> reply h3 upgrade done
  + r2 h3: upgraded
  + slot-released host=h3 why=upgraded
> reply h4 upgrade error it-broke
  + r2 h4: failed reason=(worker-error action=upgrade message="error it-broke")
> wait 1800
> tick
  + r2 h2: overdue after=30m
  + r2 h2: timed-out reason=(upgrade-timeout after=30m)
  + run-ended counts=(failed=1 timed-out=1 upgraded=2) result=completed run=r2
  ! retract 5 of h4, retract 26 of h2
> state
  r2 completed
  h1 upgraded
  h2 timed-out: no reply to upgrade within 30m (upgrade-timeout): it may still be at work
  h3 upgraded
  h4 failed: upgrade failed: error it-broke
  slot h2: begun=true command=(action=upgrade sequence=26) group=default provider=embedded run=r2 since=2026-11-21T01:35:00Z standing=held unsent-at-fence=null
  slot h4: begun=true command=(action=upgrade sequence=28) failed=true group=default provider=embedded run=r2 since=2026-11-21T01:35:00Z standing=held unsent-at-fence=null
# A late `done` frees its slot, and the record of the run stands.
> reply h2 upgrade done
  + slot-released host=h2 why=late-done
  + ignored host=h2 reply=(action=upgrade result=done) sequence=32 why=(too-late run=r2)
> state
  r2 completed
  h1 upgraded
  h2 timed-out: no reply to upgrade within 30m (upgrade-timeout): it may still be at work
  h3 upgraded
  h4 failed: upgrade failed: error it-broke
  slot h4: begun=true command=(action=upgrade sequence=28) failed=true group=default provider=embedded run=r2 since=2026-11-21T01:35:00Z standing=held unsent-at-fence=null
# With one failure too many the run stops. It does not wait for the host that is overdue.
> put-config debian rollout/upgrade-timeout=30m
  + config-replaced actor=admin config=(rollout=(upgrade-timeout=30m) worker-applications=[(name=debian)]) difference=[(after=1 before=4 path=rollout/max-concurrent) (after=0 before=2 path=rollout/max-failures)]
  = done
> trigger r3 timeout=2h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T04:05:00Z rollout=(upgrade-timeout=30m) run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T04:05:00Z, send r3/h2/prepare/1 until 2026-11-21T04:05:00Z, send r3/h3/prepare/1 until 2026-11-21T04:05:00Z, send r3/h4/prepare/1 until 2026-11-21T04:05:00Z, retract 5 of h4, retract 26 of h2
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=33
  + r3 h2: command-sent action=prepare attempt=1 sequence=34
  + r3 h3: command-sent action=prepare attempt=1 sequence=35
  + r3 h4: command-sent action=prepare attempt=1 sequence=36
  ! retract 5 of h4, retract 26 of h2
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
> reply h3 prepare done
  + r3 h3: prepared
> reply h4 prepare done
  + r3 h4: prepared
  + upgrades-began run=r3
  + r3 h1: slot-granted group=default provider=embedded
  ! send r3/h1/upgrade/1 until 2026-11-21T04:05:00Z, retract 5 of h4, retract 26 of h2
> deliver
  + r3 h1: command-sent action=upgrade attempt=1 sequence=41
  ! retract 5 of h4, retract 26 of h2
> wait 1800
> tick
  + r3 h1: overdue after=30m
  + run-stopping cause=(failed host=h1) run=r3
  + r3 h2: not-reached reason=(run-failed host=h1)
  + r3 h3: not-reached reason=(run-failed host=h1)
  + r3 h4: not-reached reason=(run-failed host=h1)
  + r3 h1: timed-out reason=(upgrade-timeout after=30m)
  + run-ended counts=(not-reached=3 timed-out=1) result=failed run=r3
  ! retract 5 of h4, retract 26 of h2, retract 41 of h1
> state
  r3 failed
  h1 timed-out: no reply to upgrade within 30m (upgrade-timeout): it may still be at work
  h2 not-reached: the run was ended by the failure of h1
  h3 not-reached: the run was ended by the failure of h1
  h4 not-reached: the run was ended by the failure of h1
  slot h1: begun=true command=(action=upgrade sequence=41) group=default provider=embedded run=r3 since=2026-11-21T02:05:00Z standing=held unsent-at-fence=null
  slot h4: begun=true command=(action=upgrade sequence=28) failed=true group=default provider=embedded run=r2 since=2026-11-21T01:35:00Z standing=held unsent-at-fence=null
# One that is overdue and fails then is counted once.
> put-config debian rollout/upgrade-timeout=30m rollout/max-failures=1
  + config-replaced actor=admin config=(rollout=(max-failures=1 upgrade-timeout=30m) worker-applications=[(name=debian)]) difference=[(after=1 before=0 path=rollout/max-failures)]
  = done
> trigger r4 timeout=2h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T04:35:00Z rollout=(max-failures=1 upgrade-timeout=30m) run=r4 trigger=(operator actor=admin)
  = done
  ! send r4/h1/prepare/1 until 2026-11-21T04:35:00Z, send r4/h2/prepare/1 until 2026-11-21T04:35:00Z, send r4/h3/prepare/1 until 2026-11-21T04:35:00Z, send r4/h4/prepare/1 until 2026-11-21T04:35:00Z, retract 5 of h4, retract 26 of h2, retract 41 of h1
> deliver
  + r4 h1: command-sent action=prepare attempt=1 sequence=42
  + r4 h2: command-sent action=prepare attempt=1 sequence=43
  + r4 h3: command-sent action=prepare attempt=1 sequence=44
  + r4 h4: command-sent action=prepare attempt=1 sequence=45
  ! retract 5 of h4, retract 26 of h2, retract 41 of h1
> reply h1 prepare done
  + r4 h1: prepared
> reply h2 prepare done
  + r4 h2: prepared
> reply h3 prepare done
  + r4 h3: prepared
> reply h4 prepare done
  + r4 h4: prepared
  + upgrades-began run=r4
  + r4 h2: slot-granted group=default provider=embedded
  ! send r4/h2/upgrade/1 until 2026-11-21T04:35:00Z, retract 5 of h4, retract 26 of h2, retract 41 of h1
> deliver
  + r4 h2: command-sent action=upgrade attempt=1 sequence=50
  ! retract 5 of h4, retract 26 of h2, retract 41 of h1
> wait 1800
> tick
  + r4 h2: overdue after=30m
  + r4 h3: slot-granted group=default provider=embedded
  ! send r4/h3/upgrade/1 until 2026-11-21T04:35:00Z, retract 5 of h4, retract 26 of h2, retract 41 of h1
> deliver
  + r4 h3: command-sent action=upgrade attempt=1 sequence=51
  ! retract 5 of h4, retract 26 of h2, retract 41 of h1
> reply h2 upgrade error it-broke
  + r4 h2: failed reason=(worker-error action=upgrade message="error it-broke")
> state
  r4 active
  h1 prepared
  h2 failed: upgrade failed: error it-broke
  h3 upgrading
  h4 prepared
  slot h1: begun=true command=(action=upgrade sequence=41) group=default provider=embedded run=r3 since=2026-11-21T02:05:00Z standing=held unsent-at-fence=null
  slot h2: begun=true command=(action=upgrade sequence=50) failed=true group=default provider=embedded run=r4 since=2026-11-21T02:35:00Z standing=held unsent-at-fence=null
  slot h3: begun=true command=(action=upgrade sequence=51) group=default provider=embedded run=r4 since=2026-11-21T03:05:00Z standing=held unsent-at-fence=null
  slot h4: begun=true command=(action=upgrade sequence=28) failed=true group=default provider=embedded run=r2 since=2026-11-21T01:35:00Z standing=held unsent-at-fence=null
