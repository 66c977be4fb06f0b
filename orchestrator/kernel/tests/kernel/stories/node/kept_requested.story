# The node of a host that failed stays cordoned when a later run that has only asked for a slot is cancelled.
> settings external kubernetes release
  + settings-adopted settings=(auto-approve=true groups=() kubernetes=(drain-timeout=10m) on-failure=release provider=external reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> node h1
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> trigger r1 timeout=20h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T21:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T21:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> locked h1 granted
  + r1 h1: slot-granted drain=true group=default provider=external
  ! check h1 under 1
> cluster h1 drained
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=drained
  + r1 h1: drained
  ! send r1/h1/upgrade/1 until 2026-11-21T21:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=4
  ! nothing
> reply h1 upgrade error
  + r1 h1: failed reason=(worker-error action=upgrade message=error)
  + run-stopping cause=(failed host=h1) run=r1
  + slot-release-due host=h1 why=failed
  + run-ended counts=(failed=1) result=failed run=r1
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=failed
  ! nothing
> trigger r2 timeout=20h
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T21:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T21:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=6
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
  + upgrades-began run=r2
  + slot-requested group=default host=h1 run=r2
  + r2 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h1: cancelled reason=(run-cancelled actor=admin)
  + slot-release-due host=h1 why=not-needed
  + run-ended counts=(cancelled=1) result=cancelled run=r2
  = done
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! nothing
> state
  r2 cancelled
  h1 cancelled: the run was cancelled by admin
