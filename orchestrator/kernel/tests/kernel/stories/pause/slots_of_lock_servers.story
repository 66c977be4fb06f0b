# A slot that was requested is given up when the site is paused, whatever becomes of the request.
> host h1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> settings external
  + settings-adopted settings=(auto-approve=true groups=() provider=external)
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
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default
> pause
  + site-paused actor=admin cause=operator reason="the fair is on"
  + r1 h1: turn-lost
  + slot-release-due host=h1 why=not-needed
  = done
  ! unlock h1 of default
> locked h1 granted
> unlocked h1 granted
  + slot-released host=h1 why=not-needed
  ! nothing
> explain h1
  the site is paused by admin: the fair is on | status=prepared | since=2026-11-21T01:00:00Z | why=paused@2026-11-21T05:00:00Z | in-run=paused
> resume
  + site-resumed actor=admin
  + slot-requested group=default host=h1 run=r1
  + r1 h1: waiting reason=(asking-for-slot group=default)
  = done
  ! lock h1 of default
> locked h1 granted
  + r1 h1: slot-granted group=default provider=external
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
# One that was granted is kept.
> pause
  + site-paused actor=admin cause=operator reason="the fair is on"
  = done
> sent h1 upgrade
  + r1 h1: command-sent action=upgrade attempt=1 sequence=4
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-release-due host=h1 why=upgraded
  + run-ended counts=(upgraded=1) result=completed run=r1
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=upgraded
  ! nothing
