# A host did not answer upgrade. In the next run its upgrade is never sent: the slot is still held for the first.
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
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T03:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T03:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=5
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
  + upgrades-began run=r2
  + r2 h1: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T03:00:00Z
> state
  r2 active
  h1 upgrading
  slot h1: begun=true command=(action=upgrade sequence=4) group=default provider=embedded run=r2 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
> wait 3600
> tick
  + r2 h1: timed-out reason=(not-sent action=upgrade)
  + run-ended counts=(timed-out=1) result=timed-out run=r2
  ! new fence above 1
> fence
  + fenced leader=one sequence=7
  + fence-passed sequence=7
  ! nothing
> state
  r2 timed-out
  h1 timed-out: upgrade could not be sent before not-after
  slot h1: begun=true command=(action=upgrade sequence=4) group=default provider=embedded run=r2 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=1
> reply h1 upgrade to=4 run=r1 done
  + slot-released host=h1 why=late-done
  + ignored host=h1 reply=(action=upgrade result=done) sequence=8 why=nothing-outstanding
> state
  r2 timed-out
  h1 timed-out: upgrade could not be sent before not-after
