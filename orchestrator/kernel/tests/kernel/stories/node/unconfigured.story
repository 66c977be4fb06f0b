# A node that stays cordoned is forgotten on request when its cluster is no longer configured. Who asked is recorded all the same.
> settings kubernetes default:1
  + settings-adopted settings=(auto-approve=true kubernetes=(drain-timeout=10m) reboot=(backoff=(first=5m jitter=0s max=20m) max-concurrent=1 unreachable-max=0))
> host h1
> node h1
> nodes-seen
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted drain=true group=default provider=embedded
  ! check h1 under 1
> cluster h1 drained
  + node host=h1 step=(cordoned fence=(restored=0 sequence=1))
  + node host=h1 step=drained
  + r1 h1: drained
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=4
  ! nothing
> reply h1 upgrade error disk full
  + r1 h1: failed reason=(worker-error action=upgrade message="error disk full")
  + run-stopping cause=(failed host=h1) run=r1
  + run-ended counts=(failed=1) result=failed run=r1
> settings default:1
  + settings-adopted settings=(auto-approve=true)
> uncordon h1 why=mended
  + node host=h1 step=(uncordon-requested actor=admin reason=mended)
  + node host=h1 step=uncordoned
  = done
> uncordon h1
  = refused: the node of h1 is not cordoned by this site
> state
  r1 failed
  h1 failed: upgrade failed: error disk full
  slot h1: begun=true command=(action=upgrade sequence=4) failed=true group=default provider=embedded run=r1 since=2026-11-21T01:00:00Z standing=held unsent-at-fence=null
