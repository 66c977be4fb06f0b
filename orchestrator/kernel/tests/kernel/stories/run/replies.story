# Replies that change nothing are recorded and say why, the first of each minute of a host, without the text of errors.
> host h1
> host h2
> host h3
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> reply h1 prepare done
  + ignored host=h1 reply=(action=prepare result=done) sequence=2 why=nothing-outstanding
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
# Before the command is seen, from an unknown host, to another command, malformed, without a meaning.
> wait 60
> reply h1 prepare done
  + ignored host=h1 reply=(action=prepare result=done) sequence=3 why=nothing-outstanding
> deliver
  + r1 h1: command-sent action=prepare attempt=1 sequence=4
  + r1 h2: command-sent action=prepare attempt=1 sequence=5
  + r1 h3: command-sent action=prepare attempt=1 sequence=6
  ! nothing
> wait 60
> reply stranger prepare done
  + ignored host=stranger reply=(action=prepare result=done) sequence=7 why=nothing-outstanding
> wait 60
> reply h1 prepare to=999 done
  + ignored host=h1 reply=(action=prepare result=done) sequence=8 why=nothing-outstanding
> wait 60
> reply h1 upgrade done
  + ignored host=h1 reply=(action=upgrade result=done) sequence=9 why=nothing-outstanding
> wait 60
> reply h1 prepare to=5 done
  + ignored host=h1 reply=(action=prepare result=done) sequence=10 why=nothing-outstanding
> wait 60
> garbage h1
  + ignored host=h1 reply=null sequence=11 why=(malformed detail="payload is not a valid message")
> wait 60
> garbage stranger to=4
  + ignored host=stranger reply=null sequence=12 why=(malformed detail="payload is not a valid message")
> unknown os-upgrade:control.nonsense
  + ignored host=null reply=null sequence=13 why=(unknown-subject subject=os-upgrade:control.nonsense)
> foreign h1
  + ignored host=h1 reply=null sequence=14 why=foreign-command
> sent h1 prepare
  + ignored host=h1 reply=null sequence=15 why=foreign-command
> sent h1 prepare run=r9
  + ignored host=h1 reply=null sequence=16 why=foreign-command
> sent h1 upgrade
  + ignored host=h1 reply=null sequence=17 why=foreign-command
# To the command of another run at the same sequence, which the site had before it was rolled back.
> wait 60
> reply h1 prepare to=4 run=r0 done
  + ignored host=h1 reply=(action=prepare result=done) sequence=18 why=nothing-outstanding
# With and without the header; and repeated.
> reply h1 prepare to=4 done
  + r1 h1: prepared
> wait 60
> reply h1 prepare to=4 done
  + ignored host=h1 reply=(action=prepare result=done) sequence=20 why=already-answered
> wait 60
> reply h1 prepare done
  + ignored host=h1 reply=(action=prepare result=done) sequence=21 why=already-answered
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + r1 h3: prepared
  + upgrades-began run=r1
  + r1 h1: slot-granted group=default provider=embedded
  ! send r1/h1/upgrade/1 until 2026-11-21T05:00:00Z
# A late reply to prepare after the grant of the slot.
> wait 60
> reply h1 prepare to=4 too late
  + ignored host=h1 reply=(action=prepare result=error) sequence=24 why=nothing-outstanding
> deliver
  + r1 h1: command-sent action=upgrade attempt=1 sequence=25
  ! nothing
> reply h1 upgrade done
  + r1 h1: upgraded
  + slot-released host=h1 why=upgraded
  + r1 h2: slot-granted group=default provider=embedded
  ! send r1/h2/upgrade/1 until 2026-11-21T05:00:00Z
> wait 60
> reply h1 upgrade done
  + ignored host=h1 reply=(action=upgrade result=done) sequence=27 why=already-answered
> wait 60
> reply h1 prepare done
  + ignored host=h1 reply=(action=prepare result=done) sequence=28 why=nothing-outstanding
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r1
  + r1 h3: cancelled reason=(run-cancelled actor=admin)
  = done
> deliver
  + r1 h2: command-sent action=upgrade attempt=1 sequence=29
  ! nothing
> reply h2 upgrade done
  + r1 h2: upgraded
  + slot-released host=h2 why=upgraded
  + run-ended counts=(cancelled=1 upgraded=2) result=cancelled run=r1
# From the earlier run, in the next one.
> trigger r2
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:13:00Z rollout=() run=r2 trigger=(operator actor=admin)
  = done
  ! send r2/h1/prepare/1 until 2026-11-21T05:13:00Z, send r2/h2/prepare/1 until 2026-11-21T05:13:00Z, send r2/h3/prepare/1 until 2026-11-21T05:13:00Z
> sent h2 prepare
  + r2 h2: command-sent action=prepare attempt=1 sequence=31
  ! send r2/h1/prepare/1 until 2026-11-21T05:13:00Z, send r2/h3/prepare/1 until 2026-11-21T05:13:00Z
> wait 60
> reply h2 upgrade done
  + ignored host=h2 reply=(action=upgrade result=done) sequence=32 why=already-answered
> wait 60
> reply h2 prepare to=5 done
  + ignored host=h2 reply=(action=prepare result=done) sequence=33 why=nothing-outstanding
> reply h2 prepare done
  + r2 h2: prepared
> wait 60
> reply h1 prepare to=4 done
  + ignored host=h1 reply=(action=prepare result=done) sequence=35 why=nothing-outstanding
> reply h1 prepare to=4 done
> reply h3 prepare to=4 done
  + ignored host=h3 reply=(action=prepare result=done) sequence=37 why=nothing-outstanding
