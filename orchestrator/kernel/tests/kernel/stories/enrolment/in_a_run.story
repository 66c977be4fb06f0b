# Hosts that are withdrawn while a run is active.
> settings external waiting
  + settings-adopted settings=(groups=() provider=external)
> host h1
> host h2
> host h3
> host h4
> host h5
> put-config debian rollout/max-concurrent=2
  + config-replaced actor=admin config=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> approve h1 h2 h3 h4 h5
  + hosts-approved actor=admin hosts=[h1 h2 h3 h4 h5]
  = done
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3) (application=debian group=default host=h4) (application=debian group=default host=h5)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z, send r1/h4/prepare/1 until 2026-11-21T05:00:00Z, send r1/h5/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  + r1 h4: command-sent action=prepare attempt=1 sequence=5
  + r1 h5: command-sent action=prepare attempt=1 sequence=6
  ! nothing
# A withdrawn host that is preparing is not waited for.
> withdraw h5 why=broken
  + host-withdrawn actor=admin host=h5 reason=broken
  + r1 h5: cancelled reason=(host-withdrawn actor=admin reason=broken)
  = done
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
> reply h4 prepare done
  + r1 h4: prepared
  + upgrades-began run=r1
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
# A withdrawn host at work is finished, including its reboot.
> locked h1 granted
  + r1 h1: slot-granted group=default provider=external
  + slot-requested group=default host=h2 run=r1
  + r1 h2: waiting reason=(asking-for-slot group=default)
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z, lock h2 of default
> sent h1 upgrade
  + r1 h1: command-sent action=upgrade attempt=1 sequence=11
  ! lock h2 of default
> withdraw h1 why=moved
  + host-withdrawn actor=admin host=h1 reason=moved
  = done
> explain h1
  its worker has not answered upgrade yet; it takes no part in runs after this one | status=upgrading | since=2026-11-21T01:00:00Z | why=reply-awaited@2026-11-21T05:00:00Z,leaves-after-run@2026-11-21T05:00:00Z
> reply h1 upgrade reboot-required
  + r1 h1: reboot-required
  ! send r1/h1/reboot/1 until 2026-11-21T05:00:00Z, lock h2 of default
> sent h1 reboot
  + r1 h1: command-sent action=reboot attempt=1 sequence=13
  ! lock h2 of default
> state
  r1 active
  h1 rebooting
  h2 waiting
  h3 prepared
  h4 prepared
  h5 cancelled: withdrawn by admin: broken
  slot h1: begun=true command=(action=reboot sequence=13) group=default provider=external run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
  slot h2: begun=false command=null group=default provider=external run=r1 since=2026-11-21T01:00:00Z standing=requested unsent-at-fence=null
# A withdrawn host whose slot was requested releases it.
> withdraw h2 why=sold
  + host-withdrawn actor=admin host=h2 reason=sold
  + r1 h2: cancelled reason=(host-withdrawn actor=admin reason=sold)
  + slot-release-due host=h2 why=not-needed
  + slot-requested group=default host=h3 run=r1
  + r1 h3: waiting reason=(asking-for-slot group=default)
  = done
  ! lock h3 of default, unlock h2 of default
> locked h2 granted
> unlocked h2 granted
  + slot-released host=h2 why=not-needed
  ! lock h3 of default
# Its reply to prepare is ignored.
> reply h5 prepare done
  + ignored host=h5 reply=(action=prepare result=done) sequence=14 why=nothing-outstanding
> approve h5
  + hosts-approved actor=admin hosts=[h5]
  = done
> explain h5
  withdrawn by admin: broken | status=cancelled | since=2026-11-21T01:00:00Z | why=host-withdrawn | in-run=host-withdrawn
> locked h3 granted
  + r1 h3: slot-granted group=default provider=external
  ! send r1/h3/upgrade/1 until 2026-11-21T05:00:00Z
> sent h3 upgrade
  + r1 h3: command-sent action=upgrade attempt=1 sequence=15
  ! nothing
> reply h3 upgrade done
  + r1 h3: upgraded
  + slot-release-due host=h3 why=upgraded
  + slot-requested group=default host=h4 run=r1
  + r1 h4: waiting reason=(asking-for-slot group=default)
  ! lock h4 of default, unlock h3 of default
> unlocked h3 granted
  + slot-released host=h3 why=upgraded
  ! lock h4 of default
> reply h1 reboot done
  + r1 h1: upgraded
  + slot-release-due host=h1 why=upgraded
  ! lock h4 of default, unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=upgraded
  ! lock h4 of default
> withdraw h4
  + host-withdrawn actor=admin host=h4 reason=moved
  + r1 h4: cancelled reason=(host-withdrawn actor=admin reason=moved)
  + slot-release-due host=h4 why=not-needed
  + run-ended counts=(cancelled=3 upgraded=2) result=completed run=r1
  = done
  ! unlock h4 of default, retract 6 of h5
> state
  r1 completed
  h1 upgraded
  h2 cancelled: withdrawn by admin: sold
  h3 upgraded
  h4 cancelled: withdrawn by admin: moved
  h5 cancelled: withdrawn by admin: broken
  slot h4: begun=false command=null group=default provider=external run=r1 since=2026-11-21T01:00:00Z standing=(releasing=(why=not-needed)) unsent-at-fence=null
> explain h1
  withdrawn by admin: moved | why=host-withdrawn
# A window starts no run without an approved host.
> withdraw h3
  + host-withdrawn actor=admin host=h3 reason=moved
  = done
> withdraw h5
  + host-withdrawn actor=admin host=h5 reason=moved
  = done
> put-config debian maintenance-windows=Saturday~01:00~4h
  + config-replaced actor=admin config=(maintenance-windows=[(days-of-week=Saturday duration=4h start-time=01:00 timezone=site-local)] worker-applications=[(name=debian)]) difference=[(before=(max-concurrent=2) path=rollout) (after=[(days-of-week=Saturday duration=4h start-time=01:00 timezone=site-local)] path=maintenance-windows)]
  = done
> explain h1
  withdrawn by admin: moved | why=host-withdrawn
> due r2
> approve h3
  + hosts-approved actor=admin hosts=[h3]
  = done
> explain h3
  no run is active; the next starts automatically at 2026-11-21T01:00:00Z | why=no-run@2026-11-21T01:00:00Z
> due r2
  + run-started hosts=[(application=debian group=default host=h1 skipped=(host-withdrawn actor=admin reason=moved)) (application=debian group=default host=h2 skipped=(host-withdrawn actor=admin reason=sold)) (application=debian group=default host=h3) (application=debian group=default host=h4 skipped=(host-withdrawn actor=admin reason=moved)) (application=debian group=default host=h5 skipped=(host-withdrawn actor=admin reason=moved))] not-after=2026-11-21T05:00:00Z rollout=() run=r2 trigger=(window end=2026-11-21T05:00:00Z start=2026-11-21T01:00:00Z)
  ! send r2/h3/prepare/1 until 2026-11-21T05:00:00Z, unlock h4 of default, retract 6 of h5
> state
  r2 active
  h1 skipped: withdrawn by admin: moved
  h2 skipped: withdrawn by admin: sold
  h3 pending
  h4 skipped: withdrawn by admin: moved
  h5 skipped: withdrawn by admin: moved
  slot h4: begun=false command=null group=default provider=external run=r1 since=2026-11-21T01:00:00Z standing=(releasing=(why=not-needed)) unsent-at-fence=null
# A host that was auto-approved when the run started, and has left since, can be withdrawn too and is not started.
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h3: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=1 skipped=4) result=cancelled run=r2
  = done
  ! unlock h4 of default, retract 6 of h5
> settings embedded hold default:1
  + settings-adopted settings=(auto-approve=true)
> host h9
> trigger r9
  + run-started hosts=[(application=debian group=default host=h1 skipped=(host-withdrawn actor=admin reason=moved)) (application=debian group=default host=h2 skipped=(host-withdrawn actor=admin reason=sold)) (application=debian group=default host=h3) (application=debian group=default host=h4 skipped=(host-withdrawn actor=admin reason=moved)) (application=debian group=default host=h5 skipped=(host-withdrawn actor=admin reason=moved)) (application=debian group=default host=h9)] not-after=2026-11-21T05:00:00Z rollout=() run=r9 trigger=(operator actor=admin)
  = done
  ! send r9/h3/prepare/1 until 2026-11-21T05:00:00Z, send r9/h9/prepare/1 until 2026-11-21T05:00:00Z, unlock h4 of default, retract 6 of h5
> settings embedded hold default:1 waiting
  + settings-adopted settings=()
> gone h9
> remove h9
  = refused: h9 is pending in the active run: cancel the run, or let it go on with `os-upgrade run give-up`
> withdraw h9
  + host-withdrawn actor=admin host=h9 reason=moved
  + r9 h9: cancelled reason=(host-withdrawn actor=admin reason=moved)
  = done
  ! send r9/h3/prepare/1 until 2026-11-21T05:00:00Z, unlock h4 of default, retract 6 of h5
> remove h4
  = refused: h4 holds a slot of group default: release it with `os-upgrade lock release`, if it is certainly off
> remove h9
  + host-removed actor=admin announced=0 host=h9 reason=scrapped
  = done
  ! send r9/h3/prepare/1 until 2026-11-21T05:00:00Z, unlock h4 of default, retract 6 of h5, purge h9 up to 0
> state
  r9 active
  h1 skipped: withdrawn by admin: moved
  h2 skipped: withdrawn by admin: sold
  h3 pending
  h4 skipped: withdrawn by admin: moved
  h5 skipped: withdrawn by admin: moved
  h9 cancelled: withdrawn by admin: moved
  slot h4: begun=false command=null group=default provider=external run=r1 since=2026-11-21T01:00:00Z standing=(releasing=(why=not-needed)) unsent-at-fence=null
