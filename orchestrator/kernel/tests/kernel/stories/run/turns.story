# The host whose last turn lies most runs back goes first, ties by name. Each run here ends early.
> host h1
> host h2
> host h3
> host h4
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z, send r1/h4/prepare/1 until 2026-11-21T05:00:00Z
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
> reply h4 prepare done
  + r1 h4: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=10
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r1
  + r1 h3: cancelled reason=(run-cancelled actor=admin)
  + r1 h4: cancelled reason=(run-cancelled actor=admin)
  = done
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=12
  ! nothing
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(cancelled=2 upgraded=2) result=cancelled run=r1
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T05:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z, send r2/h3/prepare/1 until 2026-11-21T05:00:00Z, send r2/h4/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=14
  + r2 h2: command-sent action=prepare attempt=1 sequence=15
  + r2 h3: command-sent action=prepare attempt=1 sequence=16
  + r2 h4: command-sent action=prepare attempt=1 sequence=17
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
> reply h4 prepare done
  + r2 h4: prepared
  + upgrades-began run=r2
  + r2 h3: slot-granted group=default provider=embedded
  ! send r2/h3/upgrade/1 until 2026-11-21T05:00:00Z
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h1: cancelled reason=(run-cancelled actor=admin)
  + r2 h2: cancelled reason=(run-cancelled actor=admin)
  + r2 h4: cancelled reason=(run-cancelled actor=admin)
  = done
> deliver
  + r2 h3: command-sent action=upgrade attempt=1 sequence=22
  ! nothing
> reply h3 upgrade disk full
  + r2 h3: failed reason=(worker-error action=upgrade message="disk full")
  + run-ended counts=(cancelled=3 failed=1) result=cancelled run=r2
# A host that failed has had its turn. It keeps its slot, and yet comes after the others while its group has a free one.
> settings embedded default:2
  + settings-adopted settings=(auto-approve=true groups=(default=2))
> trigger r3
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T05:00:00Z rollout=() run=r3 trigger=(operator actor=admin)
  = done
  ! send r3/h1/prepare/1 until 2026-11-21T05:00:00Z, send r3/h2/prepare/1 until 2026-11-21T05:00:00Z, send r3/h3/prepare/1 until 2026-11-21T05:00:00Z, send r3/h4/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r3 h1: command-sent action=prepare attempt=1 sequence=24
  + r3 h2: command-sent action=prepare attempt=1 sequence=25
  + r3 h3: command-sent action=prepare attempt=1 sequence=26
  + r3 h4: command-sent action=prepare attempt=1 sequence=27
  ! nothing
> reply h1 prepare done
  + r3 h1: prepared
> reply h2 prepare done
  + r3 h2: prepared
> reply h3 prepare done
  + r3 h3: prepared
> reply h4 prepare done
  + r3 h4: prepared
  + upgrades-began run=r3
  + r3 h4: slot-granted group=default provider=embedded
  ! send r3/h4/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r3 h4: command-sent action=upgrade attempt=1 sequence=32
  ! nothing
> reply h4 upgrade done
  + r3 h4: upgraded
  + slot-released host=h4 why=upgraded
  + r3 h1: slot-granted group=default provider=embedded
  ! send r3/h1/upgrade/1 until 2026-11-21T05:00:00Z
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r3
  + r3 h2: cancelled reason=(run-cancelled actor=admin)
  + r3 h3: cancelled reason=(run-cancelled actor=admin)
  = done
> deliver
  + r3 h1: command-sent action=upgrade attempt=1 sequence=34
  ! nothing
> reply h1 upgrade done
  + r3 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(cancelled=2 upgraded=2) result=cancelled run=r3
# Where its group has none, it goes before a host whose last turn lies further back.
> settings embedded default:1
  + settings-adopted settings=(auto-approve=true)
> trigger r4
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4)] not-after=2026-11-21T05:00:00Z rollout=() run=r4 trigger=(operator actor=admin)
  = done
  ! send r4/h1/prepare/1 until 2026-11-21T05:00:00Z, send r4/h2/prepare/1 until 2026-11-21T05:00:00Z, send r4/h3/prepare/1 until 2026-11-21T05:00:00Z, send r4/h4/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r4 h1: command-sent action=prepare attempt=1 sequence=36
  + r4 h2: command-sent action=prepare attempt=1 sequence=37
  + r4 h3: command-sent action=prepare attempt=1 sequence=38
  + r4 h4: command-sent action=prepare attempt=1 sequence=39
  ! nothing
> reply h1 prepare done
  + r4 h1: prepared
> reply h2 prepare done
  + r4 h2: prepared
> reply h3 prepare done
  + r4 h3: prepared
> reply h4 prepare done
  + r4 h4: prepared
  + upgrades-began run=r4
  + r4 h3: slot-granted group=default provider=embedded
  ! send r4/h3/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r4 h3: command-sent action=upgrade attempt=1 sequence=44
  ! nothing
> reply h3 upgrade done
  + r4 h3: upgraded
  + slot-released host=h3 why=upgraded
  + r4 h2: slot-granted group=default provider=embedded
  ! send r4/h2/upgrade/1 until 2026-11-21T05:00:00Z
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r4
  + r4 h1: cancelled reason=(run-cancelled actor=admin)
  + r4 h4: cancelled reason=(run-cancelled actor=admin)
  = done
> deliver
  + r4 h2: command-sent action=upgrade attempt=1 sequence=46
  ! nothing
> reply h2 upgrade done
  + r4 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(cancelled=2 upgraded=2) result=cancelled run=r4
# With a lock server, a host that holds its slot asks once the server has denied one to the host before it.
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
> gone h3
> gone h4
> trigger r5
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r5 trigger=(operator actor=admin)
  = done
  ! send r5/h1/prepare/1 until 2026-11-21T05:00:00Z, send r5/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r5 h1: command-sent action=prepare attempt=1 sequence=48
  + r5 h2: command-sent action=prepare attempt=1 sequence=49
  ! nothing
> reply h1 prepare done
  + r5 h1: prepared
> reply h2 prepare done
  + r5 h2: prepared
  + upgrades-began run=r5
  + slot-requested group=default host=h1 run=r5
  + r5 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> locked h1 granted
  + r5 h1: slot-granted group=default provider=external
  ! send r5/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r5 h1: command-sent action=upgrade attempt=1 sequence=52
  ! nothing
> reply h1 upgrade disk full
  + r5 h1: failed reason=(worker-error action=upgrade message="disk full")
  + run-stopping cause=(failed host=h1) run=r5
  + r5 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r5
> trigger r6
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r6 trigger=(operator actor=admin)
  = done
  ! send r6/h1/prepare/1 until 2026-11-21T05:00:00Z, send r6/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r6 h1: command-sent action=prepare attempt=1 sequence=54
  + r6 h2: command-sent action=prepare attempt=1 sequence=55
  ! nothing
> reply h1 prepare done
  + r6 h1: prepared
> reply h2 prepare done
  + r6 h2: prepared
  + upgrades-began run=r6
  + slot-requested group=default host=h2 run=r6
  + r6 h2: waiting reason=(asking-for-slot group=default)
  ! lock h2 of default
> explain h1
  waiting for its turn: h2 is first: asking for a slot of group default | status=prepared | since=2026-11-21T01:00:00Z | why=host-first@2026-11-21T05:00:00Z
> locked h2 denied
  + slot-refused host=h2 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
  + r6 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default, lock h2 of default
# The host before it asks again if an operator released the slot that it had asked for.
> release default h2 a mistake
  + slot-release-due host=h2 why=operator
  + holder-released actor=admin group=default id=h2 reason="a mistake"
  = done
  ! lock h1 of default, unlock h2 of default
> unlocked h2 granted
  + slot-released host=h2 why=operator
  + slot-requested group=default host=h2 run=r6
  + r6 h2: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default, lock h2 of default
> locked h2 denied
  + slot-refused host=h2 refusal=(denied lock-kind=failed_lock_semaphore_full value="semaphore currently full, all slots are locked already")
> locked h1 granted
  + r6 h1: slot-granted group=default provider=external
  ! send r6/h1/upgrade/1 until 2026-11-21T05:00:00Z
> explain h2
  waiting for its turn: h1 is under way | status=waiting | since=2026-11-21T01:00:00Z | why=host-under-way@2026-11-21T05:00:00Z
> deliver
  + r6 h1: command-sent action=upgrade attempt=1 sequence=58
  ! nothing
> reply h1 upgrade done
  + r6 h1: upgraded
  + slot-release-due host=h1 why=upgraded
  ! lock h2 of default, unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=upgraded
  ! lock h2 of default
> locked h2 granted
  + r6 h2: slot-granted group=default provider=external
  ! send r6/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r6 h2: command-sent action=upgrade attempt=1 sequence=60
  ! nothing
> reply h2 upgrade done
  + r6 h2: upgraded
  + slot-release-due host=h2 why=upgraded
  + run-ended counts=(upgraded=2) result=completed run=r6
  ! unlock h2 of default
> unlocked h2 granted
  + slot-released host=h2 why=upgraded
  ! nothing
# Turns count across groups.
> settings embedded default:1 edge:1
  + settings-adopted settings=(auto-approve=true groups=(default=1 edge=1))
> host h3 group=edge
> trigger r7
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=edge host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r7 trigger=(operator actor=admin)
  = done
  ! send r7/h1/prepare/1 until 2026-11-21T05:00:00Z, send r7/h2/prepare/1 until 2026-11-21T05:00:00Z, send r7/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r7 h1: command-sent action=prepare attempt=1 sequence=62
  + r7 h2: command-sent action=prepare attempt=1 sequence=63
  + r7 h3: command-sent action=prepare attempt=1 sequence=64
  ! nothing
> reply h1 prepare done
  + r7 h1: prepared
> reply h2 prepare done
  + r7 h2: prepared
> reply h3 prepare done
  + r7 h3: prepared
  + upgrades-began run=r7
  + r7 h3: slot-granted group=edge provider=embedded
  ! send r7/h3/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r7 h3: command-sent action=upgrade attempt=1 sequence=68
  ! nothing
> reply h3 upgrade done
  + r7 h3: upgraded
  + slot-released host=h3 why=upgraded
  + r7 h1: slot-granted group=default provider=embedded
  ! send r7/h1/upgrade/1 until 2026-11-21T05:00:00Z
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r7
  + r7 h2: cancelled reason=(run-cancelled actor=admin)
  = done
> deliver
  + r7 h1: command-sent action=upgrade attempt=1 sequence=70
  ! nothing
> reply h1 upgrade done
  + r7 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(cancelled=1 upgraded=2) result=cancelled run=r7
# A host that was removed and comes back is new: it has had no turn.
> host h3 group=edge unreachable
> remove h3
  + host-removed actor=admin announced=0 host=h3 reason=scrapped
  = done
  ! purge h3 up to 0
> purged h3
  + host-purged host=h3
  ! nothing
> host h3 group=edge
> approve h3
  + hosts-approved actor=admin hosts=[h3]
  = done
> trigger r8
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=edge host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r8 trigger=(operator actor=admin)
  = done
  ! send r8/h1/prepare/1 until 2026-11-21T05:00:00Z, send r8/h2/prepare/1 until 2026-11-21T05:00:00Z, send r8/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r8 h1: command-sent action=prepare attempt=1 sequence=72
  + r8 h2: command-sent action=prepare attempt=1 sequence=73
  + r8 h3: command-sent action=prepare attempt=1 sequence=74
  ! nothing
> reply h1 prepare done
  + r8 h1: prepared
> reply h2 prepare done
  + r8 h2: prepared
> reply h3 prepare done
  + r8 h3: prepared
  + upgrades-began run=r8
  + r8 h3: slot-granted group=edge provider=embedded
  ! send r8/h3/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r8 h3: command-sent action=upgrade attempt=1 sequence=78
  ! nothing
> reply h3 upgrade done
  + r8 h3: upgraded
  + slot-released host=h3 why=upgraded
  + r8 h2: slot-granted group=default provider=embedded
  ! send r8/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r8 h2: command-sent action=upgrade attempt=1 sequence=80
  ! nothing
> reply h2 upgrade done
  + r8 h2: upgraded
  + slot-released host=h2 why=upgraded
  + r8 h1: slot-granted group=default provider=embedded
  ! send r8/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r8 h1: command-sent action=upgrade attempt=1 sequence=82
  ! nothing
> reply h1 upgrade done
  + r8 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(upgraded=3) result=completed run=r8
# A drain that is given up is a turn, too: the others of the run come before its host is drained again.
> settings embedded kubernetes default:1 edge:1
  + settings-adopted settings=(auto-approve=true groups=(default=1 edge=1) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> node h1
> node h2
> node h3
> trigger r9
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=edge host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r9 trigger=(operator actor=admin)
  = done
  ! send r9/h1/prepare/1 until 2026-11-21T05:00:00Z, send r9/h2/prepare/1 until 2026-11-21T05:00:00Z, send r9/h3/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r9 h1: command-sent action=prepare attempt=1 sequence=84
  + r9 h2: command-sent action=prepare attempt=1 sequence=85
  + r9 h3: command-sent action=prepare attempt=1 sequence=86
  ! nothing
> reply h1 prepare done
  + r9 h1: prepared
> reply h2 prepare done
  + r9 h2: prepared
> reply h3 prepare done
  + r9 h3: prepared
  + upgrades-began run=r9
  + r9 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> cluster h1 remaining db-0
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(uncordon-due reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])) release=drain-given-up)
  ! uncordon h1 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + r9 h1: backed-off reason=(drain-refused pods=(count=1 first=[(name=db-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T01:00:00Z)])) until=2026-11-21T01:00:10Z
  + slot-released host=h1 why=drain-given-up
  + r9 h2: slot-granted drain=true group=default provider=embedded
  ! check h2 under 1
> wait 5m
> cluster h2 drained
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=drained
  + r9 h2: drained
  ! send r9/h2/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r9 h2: command-sent action=upgrade attempt=1 sequence=90
  ! nothing
> reply h2 upgrade done
  + r9 h2: recovering
  + node host=h2 step=(uncordon-due release=upgraded)
  ! uncordon ready h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + r9 h2: upgraded
  + slot-released host=h2 why=upgraded
  + r9 h3: slot-granted drain=true group=edge provider=embedded
  ! check h3 under 1
