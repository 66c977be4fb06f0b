# A host that is not healthy after its reboot fails for that reason. Only after a reboot the word has this meaning.
> host h1
> host h2
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
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
> reply h2 prepare unhealthy: a unit has failed
  + r1 h2: failed reason=(worker-error action=prepare message="unhealthy: a unit has failed")
  + run-stopping cause=(failed host=h2) run=r1
  + r1 h1: not-reached reason=(run-failed host=h2)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r1
> explain h2
  no run is active; no run starts automatically: no maintenance windows are configured | why=no-run,no-windows
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2)] not-after=2026-11-21T05:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h2/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=6
  + r2 h2: command-sent action=prepare attempt=1 sequence=7
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
  + upgrades-began run=r2
  + r2 h1: slot-granted group=default provider=embedded
  ! send r2/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=10
  ! nothing
> reply h1 upgrade reboot-required
  + r2 h1: reboot-required
  ! send r2/h1/reboot/1 until 2026-11-21T05:00:00Z
> deliver
  + r2 h1: command-sent action=reboot attempt=1 sequence=12
  ! nothing
> reply h1 reboot unhealthy: a unit has failed
  + r2 h1: failed reason=(unhealthy message="a unit has failed")
  + run-stopping cause=(failed host=h1) run=r2
  + r2 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=1 not-reached=1) result=failed run=r2
> explain h1
  it has held a slot of group default since 2026-11-21T01:00:00Z: not healthy after its reboot: a unit has failed; `os-upgrade lock release --group=default --id=h1 --reason TEXT` releases it; no run is active; no run starts automatically: no maintenance windows are configured | why=slot-held,no-run,no-windows
> state
  r2 failed
  h1 failed: not healthy after its reboot: a unit has failed
  h2 not-reached: the run was ended by the failure of h1
  slot h1: begun=true command=(action=reboot sequence=12) group=default provider=embedded run=r2 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
