# With `on-failure = release` the slot of a host that failed or did not answer is released at once; one failure is allowed.
> host h1
> host h2
> host h3
> put-config debian rollout/max-failures=1
  + config-replaced actor=admin config=(rollout=(max-failures=1) worker-applications=[(name=debian)]) difference=[(after=(rollout=(max-failures=1) worker-applications=[(name=debian)]) path=)]
  = created
> settings embedded release default:1
  + settings-adopted settings=(auto-approve=true on-failure=release)
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T02:00:00Z rollout=(max-failures=1) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T02:00:00Z, send r1/h2/prepare/1 until 2026-11-21T02:00:00Z, send r1/h3/prepare/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=8
  ! nothing
> reply h1 upgrade first
  + r1 h1: failed reason=(worker-error action=upgrade message=first)
  + slot-released host=h1 why=failed
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T02:00:00Z
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=10
  ! nothing
> reply h1 upgrade done
  + ignored host=h1 reply=(action=upgrade result=done) sequence=11 why=already-answered
> wait 3600
> tick
  + r1 h2: timed-out reason=(no-reply action=upgrade)
  + slot-released host=h2 why=failed
  + r1 h3: not-reached reason=(run-timed-out waited-for=(host-under-way host=h2))
  + run-ended counts=(failed=1 not-reached=1 timed-out=1) result=timed-out run=r1
  ! retract 10 of h2
> state
  r1 timed-out
  h1 failed: upgrade failed: first
  h2 timed-out: no reply to upgrade before not-after
  h3 not-reached: the run timed out before its turn: h2 was under way
> retracted h2 at=10 given
  + command-retracted deleted=false host=h2 sequence=10
  ! nothing
# The same at a lock server.
> settings external release
  + settings-adopted settings=(auto-approve=true groups=() on-failure=release provider=external)
> trigger r2 timeout=1h
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T03:00:00Z rollout=(max-failures=1) run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T03:00:00Z, send r2/h2/prepare/1 until 2026-11-21T03:00:00Z, send r2/h3/prepare/1 until 2026-11-21T03:00:00Z
> deliver
  + r2 h1: command-sent action=prepare attempt=1 sequence=12
  + r2 h2: command-sent action=prepare attempt=1 sequence=13
  + r2 h3: command-sent action=prepare attempt=1 sequence=14
  ! nothing
> reply h1 prepare done
  + r2 h1: prepared
> reply h2 prepare done
  + r2 h2: prepared
> reply h3 prepare done
  + r2 h3: prepared
  + upgrades-began run=r2
  + slot-requested group=default host=h3 run=r2
  + r2 h3: waiting reason=(asking-for-slot group=default)
  ! lock h3 of default
> locked h3 granted
  + r2 h3: slot-granted group=default provider=external
  ! send r2/h3/upgrade/1 until 2026-11-21T03:00:00Z
> deliver
  + r2 h3: command-sent action=upgrade attempt=1 sequence=18
  ! nothing
> reply h3 upgrade first
  + r2 h3: failed reason=(worker-error action=upgrade message=first)
  + slot-release-due host=h3 why=failed
  + slot-requested group=default host=h1 run=r2
  + r2 h1: waiting reason=(asking-for-slot group=default)
  ! lock h1 of default, unlock h3 of default
> unlocked h3 granted
  + slot-released host=h3 why=failed
  ! lock h1 of default
> locked h1 granted
  + r2 h1: slot-granted group=default provider=external
  ! send r2/h1/upgrade/1 until 2026-11-21T03:00:00Z
> deliver
  + r2 h1: command-sent action=upgrade attempt=1 sequence=20
  ! nothing
> reply h1 upgrade second
  + r2 h1: failed reason=(worker-error action=upgrade message=second)
  + run-stopping cause=(failed host=h1) run=r2
  + slot-release-due host=h1 why=failed
  + r2 h2: not-reached reason=(run-failed host=h1)
  + run-ended counts=(failed=2 not-reached=1) result=failed run=r2
  ! unlock h1 of default
> unlocked h1 granted
  + slot-released host=h1 why=failed
  ! nothing
> state
  r2 failed
  h1 failed: upgrade failed: second
  h2 not-reached: the run was ended by the failure of h1
  h3 failed: upgrade failed: first
