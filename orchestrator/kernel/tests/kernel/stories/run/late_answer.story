# What a worker answers after its host's part in a run is remembered and shown: nobody tells that host to reboot.
> host h1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T02:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=4
  ! nothing
> wait 3600
> tick
  + r1 h1: timed-out reason=(no-reply action=upgrade)
  + run-ended counts=(timed-out=1) result=timed-out run=r1
  ! retract 4 of h1
> retracted h1 at=4 given
  + command-retracted deleted=false host=h1 sequence=4
  ! nothing
> explain h1
  it has held a slot of group default since 2026-11-21T01:00:00Z: no reply to upgrade before not-after; `os-upgrade lock release --group=default --id=h1 --reason TEXT` releases it; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,no-run,no-windows
> reply h1 upgrade to=4 reboot-required
  + ignored host=h1 reply=(action=upgrade result=reboot-required) sequence=5 why=(too-late run=r1)
> explain h1
  it has held a slot of group default since 2026-11-21T01:00:00Z: no reply to upgrade before not-after; it answered reboot-required at 2026-11-21T02:00:00Z; `os-upgrade lock release --group=default --id=h1 --reason TEXT` releases it; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,no-run,no-windows
> state
  r1 timed-out
  h1 timed-out: no reply to upgrade before not-after
  slot h1: begun=true command=(action=upgrade sequence=4) group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
# Answers that are ignored are journaled once a minute.
> reply h1 upgrade to=4 reboot-required
> wait 60
> reply h1 upgrade to=4 out of space
  + ignored host=h1 reply=(action=upgrade result=error) sequence=7 why=(too-late run=r1)
> explain h1
  it has held a slot of group default since 2026-11-21T01:00:00Z: no reply to upgrade before not-after; it answered with an error at 2026-11-21T02:01:00Z; `os-upgrade lock release --group=default --id=h1 --reason TEXT` releases it; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,no-run,no-windows
# `done` releases the slot, and nothing overrides it.
> reply h1 upgrade to=4 done
  + slot-released host=h1 why=late-done
> explain h1
  no run is active; no run starts automatically: no maintenance windows are configured | why=no-run,no-windows
> wait 60
> reply h1 upgrade to=4 out of space
  + ignored host=h1 reply=(action=upgrade result=error) sequence=9 why=(too-late run=r1)
> state
  r1 timed-out
  h1 timed-out: no reply to upgrade before not-after
# A late answer to `prepare` is none: nothing was installed.
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T03:02:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T03:02:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=10
  ! nothing
> wait 3600
> tick
  + r2 h1: timed-out reason=(no-reply action=prepare)
  + run-ended counts=(timed-out=1) result=timed-out run=r2
  ! retract 10 of h1
> reply h1 prepare done
  + ignored host=h1 reply=(action=prepare result=done) sequence=11 why=nothing-outstanding
