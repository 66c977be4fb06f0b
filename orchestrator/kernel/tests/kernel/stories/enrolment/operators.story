# Hosts wait for approval, and are withdrawn.
> settings embedded waiting default:1
  + settings-adopted settings=()
> host h1
> host h2
> host h3 unreachable
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
# No host is approved.
> explain h1
  waits for approval: os-upgrade hosts approve h1 | why=awaits-approval
> trigger r1 validate
  = refused: none of the 3 hosts of the configured applications is approved: list them with `os-upgrade hosts list`, then `os-upgrade hosts approve NAME...` or `--all`, or set [site] auto-approve = true
> trigger r1
  = refused: none of the 3 hosts of the configured applications is approved: list them with `os-upgrade hosts list`, then `os-upgrade hosts approve NAME...` or `--all`, or set [site] auto-approve = true
> approve h1 h9 validate
  = valid
> approve h1 h9 by=bob
  + hosts-approved actor=bob hosts=[h1 h9]
  = done
# Approving again changes nothing.
> approve h1 by=eve
  = done
> explain h2
  waits for approval: os-upgrade hosts approve h2 | why=awaits-approval
# One host takes part; the others are listed as skipped.
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2 skipped=(awaits-approval host=h2)) (application=debian group=default host=h3 skipped=(awaits-approval host=h3))] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z
> state
  r1 active
  h1 pending
  h2 skipped: waits for approval: os-upgrade hosts approve h2
  h3 skipped: waits for approval: os-upgrade hosts approve h3
> explain h2
  waits for approval: os-upgrade hosts approve h2 | status=skipped | since=2026-11-21T01:00:00Z | why=awaits-approval | in-run=awaits-approval
> approve h2 h3
  + hosts-approved actor=admin hosts=[h2 h3]
  = done
> explain h2
  it was approved after the run had started | status=skipped | since=2026-11-21T01:00:00Z | why=approved-late@2026-11-21T05:00:00Z | in-run=approved-late
> explain h3
  it was approved after the run had started | status=skipped | since=2026-11-21T01:00:00Z | why=approved-late@2026-11-21T05:00:00Z | in-run=approved-late
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
> sent h1 upgrade
  + r1 h1: command-sent action=upgrade attempt=1 sequence=4
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + run-ended counts=(skipped=2 upgraded=1) result=completed run=r1
> state
  r1 completed
  h1 upgraded
  h2 skipped: waits for approval: os-upgrade hosts approve h2
  h3 skipped: waits for approval: os-upgrade hosts approve h3
# A withdrawn host is not in the next run, even with auto-approve.
> withdraw h2 validate
  = valid
> withdraw h2 by=bob why=stolen
  + host-withdrawn actor=bob host=h2 reason=stolen
  = done
> withdraw h2 by=bob why=stolen
  = done
> withdraw h2 by=eve why=lost
  + host-withdrawn actor=eve host=h2 reason=lost
  = done
> explain h2
  withdrawn by eve: lost | why=host-withdrawn
> settings embedded default:1
  + settings-adopted settings=(auto-approve=true)
> host h4
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2 skipped=(host-withdrawn actor=eve reason=lost)) (application=debian group=default host=h3 skipped=unreachable) (application=debian group=default host=h4)] not-after=2026-11-21T05:00:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:00:00Z, send r2/h4/prepare/1 until 2026-11-21T05:00:00Z
> state
  r2 active
  h1 pending
  h2 skipped: withdrawn by eve: lost
  h3 skipped: unreachable: no heartbeat when the run started
  h4 pending
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r2
  + r2 h1: cancelled reason=(run-cancelled actor=admin)
  + r2 h4: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=2 skipped=2) result=cancelled run=r2
  = done
  ! nothing
> tick
# An unknown host cannot be withdrawn, and one that is running cannot be removed. A removed host that announces itself again
# waits for approval, whatever the settings.
> withdraw h77
  = refused: there is no host h77: none of that name has announced itself, been approved or been withdrawn
> remove h77
  = refused: there is no host h77: none of that name has announced itself, been approved or been withdrawn
> host h2 awaited
> remove h2
  = refused: it is not known yet whether h2 is running: ask again when it is shown as unreachable
> host h2 unreachable
> remove h2 validate
  = valid
> remove h2
  + host-removed actor=admin announced=0 host=h2 reason=scrapped
  = done
  ! purge h2 up to 0
> remove h77
  = refused: there is no host h77: none of that name has announced itself, been approved or been withdrawn
> explain h2
  waits for approval: os-upgrade hosts approve h2 | why=awaits-approval
> purged h2
  + host-purged host=h2
  ! nothing
> purged h2
> gone h2
> remove h2
  = done
> settings embedded waiting default:1
  + settings-adopted settings=()
> host h2
> explain h2
  waits for approval: os-upgrade hosts approve h2 | why=awaits-approval
# Withdrawn hosts only.
> withdraw h1
  + host-withdrawn actor=admin host=h1 reason=moved
  = done
> withdraw h3
  + host-withdrawn actor=admin host=h3 reason=moved
  = done
> withdraw h9
  + host-withdrawn actor=admin host=h9 reason=moved
  = done
> trigger r3
  = refused: none of the 4 hosts of the configured applications is approved (2 of them withdrawn): list them with `os-upgrade hosts list`, then `os-upgrade hosts approve NAME...` or `--all`, or set [site] auto-approve = true
> withdraw h2
  + host-withdrawn actor=admin host=h2 reason=moved
  = done
> withdraw h4
  + host-withdrawn actor=admin host=h4 reason=moved
  = done
> trigger r3
  = refused: all 4 hosts of the configured applications are withdrawn: `os-upgrade hosts history` says why, and `os-upgrade hosts approve NAME...` lets one take part again
> explain h1
  withdrawn by admin: moved | why=host-withdrawn
