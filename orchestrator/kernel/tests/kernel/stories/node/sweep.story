# Nodes with a mark of this site that nothing owns are uncordoned. So are those of failed hosts that somebody made schedulable.
> settings kubernetes default:1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> host h2
> node h1 mark=1 unschedulable
> node h2
> nodes-seen
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> nodes-seen
  + node host=h1 step=uncordon-due
  ! uncordon if marked h1 under 1
> nodes-seen
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  ! nothing
> node h1
> nodes-seen
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
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
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> node h1 mark=1 unschedulable
> nodes-seen
> cluster h1 drained
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=drained
  + r1 h1: drained
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! nothing
> nodes-seen
> reply h1 upgrade error disk full
  + r1 h1: failed reason=(worker-error action=upgrade message="error disk full")
  + run-stopping cause=(failed host=h1) run=r1
  + r1 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r1
> nodes-seen
> node h1 mark=1
> nodes-seen
  + node host=h1 step=uncordon-due
  ! uncordon h1 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  ! nothing
> settings kubernetes uncordon-failed release default:1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m uncordon-failed=true) on-failure=release reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
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
  + r2 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> cluster h1 drained
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=drained
  + r2 h1: drained
  ! send r2/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=12
  ! nothing
> reply h1 upgrade error disk full
  + r2 h1: failed reason=(worker-error action=upgrade message="error disk full")
  + run-stopping cause=(failed host=h1) run=r2
  + node host=h1 step=(uncordon-due release=failed)
  + r2 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r2
  ! uncordon h1 under 1
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + slot-released host=h1 why=failed
  ! nothing
