# A new leader's fence: nothing is sent until it has been read past; what was seen meanwhile is not sent again.
> host h1
> host h2
> host h3
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2) (application=debian group=default host=h3)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
  ! send r1/h1/prepare/1 until 2026-11-21T05:00:00Z, send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> sent h1 prepare
  + r1 h1: command-sent action=prepare attempt=1 sequence=2
  ! send r1/h2/prepare/1 until 2026-11-21T05:00:00Z, send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> fence-stored two at=5
  + fenced leader=two sequence=5
  ! nothing
> sent h2 prepare
  + r1 h2: command-sent action=prepare attempt=1 sequence=3
> tick
> leader at=4
> leader at=5
  + fence-passed sequence=5
  ! send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
> fence-stored two at=5
> fence-stored one at=3
# It had read beyond its own fence when it learned that the fence was stored.
> fence-stored three at=5
> sent h3 prepare
> unknown x
> unknown x
  + ignored host=null reply=null sequence=6 why=(unknown-subject subject=x)
> fence-stored three at=6
  + fenced leader=three sequence=6
  + fence-passed sequence=6
# The fence itself is missing from the stream.
> fence-stored four at=9
  + fenced leader=four sequence=9
  ! nothing
> reply h1 prepare done
  + r1 h1: prepared
> reply h2 prepare done
  + r1 h2: prepared
> reply h3 prepare done
  + fence-passed sequence=9
  + ignored host=h3 reply=(action=prepare result=done) sequence=9 why=nothing-outstanding
  ! send r1/h3/prepare/1 until 2026-11-21T05:00:00Z
