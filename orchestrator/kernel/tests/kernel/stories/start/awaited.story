# An operator starts a run while it is not known yet which hosts are off. Those that turn out to be are left out.
> host h1
> host h2 awaited
> host h3 awaited
> host h4 awaited
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2 unheard=true) (application=debian group=default host=h3 unheard=true) (application=debian group=default host=h4 unheard=true)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
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
> reply h4 prepare done
  + r1 h4: prepared
> tick
> host h2
> host h3 unreachable
> host h4 unreachable
# A host whose answer has not been read yet is not off.
> control-unread
> tick
> control-read
> tick
  + r1 h3: skipped reason=unreachable
> tick
> explain h3
  unreachable: no heartbeat when the run started | status=skipped | since=2026-11-21T01:00:00Z | why=unreachable | in-run=unreachable
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
# Its answer comes too late.
> reply h3 prepare done
  + ignored host=h3 reply=(action=prepare result=done) sequence=9 why=nothing-outstanding
> reply h1 upgrade done
  + ignored host=h1 reply=(action=upgrade result=done) sequence=10 why=nothing-outstanding
> state
  r1 active
  h1 upgrading
  h2 prepared
  h3 skipped: unreachable: no heartbeat when the run started
  h4 prepared
  slot h1: begun=false command=null group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
# Hosts that were reachable when the run started are waited for.
> host h4
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r1
  + r1 h2: cancelled reason=(run-cancelled actor=admin)
  + r1 h4: cancelled reason=(run-cancelled actor=admin)
  = done
  ~ hint h3: r1 cancelled
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=11
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(cancelled=2 skipped=1 upgraded=1) result=cancelled run=r1
  ! retract 4 of h3
> put-config debian rollout/unreachable=fail
  + config-replaced actor=admin config=(rollout=(unreachable=fail) worker-applications=[(name=debian)]) difference=[(after=(unreachable=fail) path=rollout)]
  = done
> host h3 awaited
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3 unheard=true) (application=debian group=default host=h4)] not-after=2026-11-21T05:00:00Z rollout=(unreachable=fail) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z, send r2/h3/prepare/1 until 2026-11-21T05:00:00Z, send r2/h4/prepare/1 until 2026-11-21T05:00:00Z, retract 4 of h3
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=13
  + r2 h2: command-sent action=prepare attempt=1 sequence=14
  + r2 h3: command-sent action=prepare attempt=1 sequence=15
  + r2 h4: command-sent action=prepare attempt=1 sequence=16
  ! retract 4 of h3
> host h2 unreachable
> tick
> reply h1 prepare done
  + r2 h1: prepared
> host h3 unreachable
> tick
  + r2 h3: skipped reason=unreachable
  + run-stopping cause=(failed host=h3) run=r2
  + r2 h1: not-reached reason=(run-failed host=h3)
  + r2 h2: not-reached reason=(run-failed host=h3)
  + r2 h4: not-reached reason=(run-failed host=h3)
  + run-ended counts=(not-reached=3 skipped=1) result=failed run=r2
  ~ hint h2 h3 h4: r2 failed
  ! retract 4 of h3, retract 14 of h2, retract 15 of h3, retract 16 of h4
> state
  r2 failed
  h1 not-reached: the run was ended by the failure of h3
  h2 not-reached: the run was ended by the failure of h3
  h3 skipped: unreachable: no heartbeat when the run started
  h4 not-reached: the run was ended by the failure of h3
