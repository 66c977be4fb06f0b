# Three hosts, one of which needs a reboot.
> host h1
> host h2
> host h3
> settings embedded default:1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)])
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> wakeup
  never
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=(max-concurrent=1 max-failures=0 unreachable=skip) run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> wakeup
  2026-11-21T05:00:00Z
> explain h1
  its prepare command is about to be sent | status=pending | since=2026-11-21T01:00:00Z | until=2026-11-21T05:00:00Z
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
  + r1 h3: command-sent action=prepare attempt=1 sequence=4
  ! nothing
> explain h2
  its worker has not answered prepare yet | status=preparing | since=2026-11-21T01:00:00Z | until=2026-11-21T05:00:00Z
> reply h1 prepare done
  + r1 h1: prepared
> reply h3 prepare to=4 done
  + r1 h3: prepared
> explain h1
  waiting until 1 more hosts are prepared | status=prepared | since=2026-11-21T01:00:00Z | until=2026-11-21T05:00:00Z
> reply h2 prepare done
  + r1 h2: prepared
  + upgrades-began run=r1
  + r1 h1: waiting reason=(slot-denied group=default lock-kind=unknown_group value="there is no group default")
> state
  r1 active
  h1 waiting: denied a slot of group default: there is no group default (unknown_group)
  h2 prepared
  h3 prepared
> explain h1
  denied a slot of group default: there is no group default (unknown_group) | status=waiting | since=2026-11-21T01:00:00Z | reason=slot-denied | until=2026-11-21T05:00:00Z
> explain h2
  waiting for its turn | status=prepared | since=2026-11-21T01:00:00Z | until=2026-11-21T05:00:00Z
> deliver
> explain h1
  denied a slot of group default: there is no group default (unknown_group) | status=waiting | since=2026-11-21T01:00:00Z | reason=slot-denied | until=2026-11-21T05:00:00Z
> reply h1 upgrade done
  + ignored host=h1 reply=(action=upgrade result=done) sequence=8 why=nothing-outstanding
> deliver
> reply h2 upgrade reboot-required
  + ignored host=h2 reply=(action=upgrade result=reboot-required) sequence=9 why=nothing-outstanding
> explain h2
  waiting for its turn | status=prepared | since=2026-11-21T01:00:00Z | until=2026-11-21T05:00:00Z
> deliver
> explain h2
  waiting for its turn | status=prepared | since=2026-11-21T01:00:00Z | until=2026-11-21T05:00:00Z
> reply h2 reboot done
  + ignored host=h2 reply=(action=reboot result=done) sequence=10 why=nothing-outstanding
> explain h2
  waiting for its turn | status=prepared | since=2026-11-21T01:00:00Z | until=2026-11-21T05:00:00Z
> deliver
> reply h3 upgrade done
  + ignored host=h3 reply=(action=upgrade result=done) sequence=11 why=nothing-outstanding
> state
  r1 active
  h1 waiting: denied a slot of group default: there is no group default (unknown_group)
  h2 prepared
  h3 prepared
> explain h1
  denied a slot of group default: there is no group default (unknown_group) | status=waiting | since=2026-11-21T01:00:00Z | reason=slot-denied | until=2026-11-21T05:00:00Z
