# A lock server may have freed a slot that the state has. Its host, once refused, does not keep back the one that really holds a slot.
> host h1
> host h2
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
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
> locked h1 granted
  + r1 h1: slot-granted group=default provider=external
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> reply h1 upgrade disk full
  + r1 h1: failed reason=(worker-error action=upgrade message="disk full")
  + run-stopping cause=(failed host=h1) run=r1
  + r1 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r1
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=8
  + r2 h2: command-sent action=prepare attempt=1 sequence=9
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
  + slot-requested group=default host=h2 run=r2
  + r2 h2: waiting reason=(asking-for-slot group=default)
  ! lock h2 of default
> locked h2 granted
  + r2 h2: slot-granted group=default provider=external
  ! send r2/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h2: command-sent action=upgrade attempt=1 sequence=12
  ! nothing
> reply h2 upgrade disk full
  + r2 h2: failed reason=(worker-error action=upgrade message="disk full")
  + run-stopping cause=(failed host=h2) run=r2
  + r2 h1: not-reached reason=(run-failed host=h2)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r2
# Both hold a slot in the state, and the server has one only: that of h2.
> trigger r3
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T05:00:00Z, send r3/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=14
  + r3 h2: command-sent action=prepare attempt=1 sequence=15
  ! nothing
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
  + upgrades-began run=r3
  + r3 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> locked h1 denied
  + slot-refused host=h1 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
  + r3 h2: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default, lock h2 of default
> explain h2
  asking for a slot of group default | status=waiting | since=2026-11-21T01:00:00Z | why=asking-for-slot@2026-11-21T05:00:00Z | in-run=asking-for-slot
> locked h2 granted
  + r3 h2: slot-granted group=default provider=external
  ! send r3/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r3 h2: command-sent action=upgrade attempt=1 sequence=18
  ! nothing
> reply h2 upgrade done
  + r3 h2: upgraded
  + slot-release-due host=h2 why=upgraded
  ! lock h1 of default, unlock h2 of default
> unlocked h2 granted
  + slot-released host=h2 why=upgraded
  ! lock h1 of default
> locked h1 granted
  + r3 h1: slot-granted group=default provider=external
  ! send r3/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r3 h1: command-sent action=upgrade attempt=1 sequence=20
  ! nothing
> reply h1 upgrade done
  + r3 h1: upgraded
  + slot-release-due host=h1 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r3
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=upgraded
  ! nothing
