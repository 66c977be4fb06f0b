# At not-after a host that is drained is cancelled, and one that recovers is upgraded. Uncordoning goes on without the run.
> settings kubernetes default:2
  + settings-adopted settings=(auto-approve=true groups=(default=2) kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> host h2
> node h1
> node h2
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian rollout/max-concurrent=2
  + config-replaced actor=admin config=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-concurrent=2) worker-applications=[(name=debian)]) path=)]
  = created
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T02:00:00Z rollout=(max-concurrent=2) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z
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
  + r1 h2: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1, check h2 under 1
> cluster h1 drained boot=a1
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(drained boot-id=a1)
  + r1 h1: drained
  ! send r1/h1/upgrade/1 until 2026-11-21T02:00:00Z, check h2 under 1
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=6
  ! check h2 under 1
> reply h1 upgrade done
  + r1 h1: recovering
  + node host=h1 step=(uncordon-due release=upgraded)
  ! uncordon ready h1 under 1, check h2 under 1
> cluster h2 clear
  + node host=h2 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h2 step=eviction-began
  ! uncordon ready h1 under 1, evict from cordoned h2 under 1
> wait 55m
> tick
  + node host=h2 step=(uncordon-due reason=(drain-timed-out after=10m) release=drain-given-up)
  ! uncordon ready h1 under 1, uncordon h2 under 1
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + r1 h2: backed-off reason=(drain-timed-out after=10m) until=2026-11-21T02:00:00Z
  + slot-released host=h2 why=drain-given-up
  ! uncordon ready h1 under 1
> wait 5m
> tick
  + r1 h1: upgraded
  + r1 h2: not-reached reason=(drain-timed-out after=10m)
  + run-ended counts=(not-reached=1 upgraded=1) result=timed-out run=r1
> cluster h1 unreachable
  + node host=h1 step=(waiting waits=(unreachable why=timed-out))
> explain h1
  it has held a slot of group default since 2026-11-21T01:00:00Z; its node is being uncordoned since 2026-11-21T01:00:00Z: the Kubernetes API server is unreachable: timed out; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,node-under-way,no-run,no-windows
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  + slot-released host=h1 why=upgraded
  ! nothing
# A new leader writes its fence into the mark before the command goes out, and looks whether the node is still drained.
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T03:00:00Z rollout=(max-concurrent=2) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T03:00:00Z, send r2/h2/prepare/1 until 2026-11-21T03:00:00Z
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
  + r2 h2: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1, check h2 under 1
> cluster h1 drained boot=a1
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=(drained boot-id=a1)
  + r2 h1: drained
  ! send r2/h1/upgrade/1 until 2026-11-21T03:00:00Z, check h2 under 1
> fence
  + fenced leader=one sequence=12
  + fence-passed sequence=12
  ! evict from h1 under 12, check h2 under 12
> cluster h1 remaining late-0
  + node host=h1 step=(cordoned fence=(restored=0 sequence=12))
  + node host=h1 step=recheck-began
  + node host=h1 step=(waiting waits=(pods pods=(count=1 first=[(name=late-0 namespace=shop obstacle=(budget budgets=[db]) since=2026-11-21T02:00:00Z)])))
  ! evict from ours h1 under 12, check h2 under 12
> cluster h1 drained boot=a1
  + node host=h1 step=(drained boot-id=a1)
  ! send r2/h1/upgrade/1 until 2026-11-21T03:00:00Z, check h2 under 12
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=13
  ! check h2 under 12
> fence
  + fenced leader=one sequence=14
  + fence-passed sequence=14
  ! hold h1 under 14, check h2 under 14
> cluster h1 held
  + node host=h1 step=(cordoned fence=(restored=0 sequence=14))
  ! check h2 under 14
> cluster h2 clear
  + node host=h2 step=(cordoned fence=(restored=0 sequence=14))
  + node host=h2 step=eviction-began
  ! evict from cordoned h2 under 14
# A host that fails stays cordoned, whatever becomes of its slot.
> reply h1 upgrade error disk full
  + r2 h1: failed reason=(worker-error action=upgrade message="error disk full")
  + run-stopping cause=(failed host=h1) run=r2
  + r2 h2: not-reached reason=(run-failed host=h1)
  + node host=h2 step=(uncordon-due release=not-needed)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r2
  ! uncordon h2 under 14
> explain h1
  it has held a slot of group default since 2026-11-21T02:00:00Z: upgrade failed: error disk full; `os-upgrade lock release --group=default --id=h1 --reason TEXT` releases it; its node stays cordoned, because its host failed or was given up; `os-upgrade hosts uncordon --reason=TEXT h1` ends that; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,node-cordoned,no-run,no-windows
> cluster h2 uncordoned
  + node host=h2 step=uncordoned
  + slot-released host=h2 why=not-needed
  ! nothing
> release default h1 looked after
  + slot-released host=h1 why=operator
  + holder-released actor=admin group=default id=h1 reason="looked after"
  = done
> explain h1
  its node stays cordoned, because its host failed or was given up; `os-upgrade hosts uncordon --reason=TEXT h1` ends that; no run is active; no run starts automatically: no maintenance windows are configured | why=node-cordoned,no-run,no-windows
> remove h1
  = refused: the node of h1 is cordoned: end that with `os-upgrade hosts uncordon` first
> uncordon h2
  = refused: the node of h2 is not cordoned by this site
> uncordon h1 why=mended
  + node host=h1 step=(uncordon-requested actor=admin reason=mended)
  = done
  ! uncordon h1 under 14
> uncordon h1
  = done
> cluster h1 uncordoned
  + node host=h1 step=uncordoned
  ! nothing
> state
  r2 failed
  h1 failed: upgrade failed: error disk full
  h2 not-reached: the run was ended by the failure of h1
