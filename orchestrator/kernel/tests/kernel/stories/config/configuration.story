# A write has a precondition on the current configuration; a configuration that has changed is not overwritten.
> delete-config
  = refused: there is no configuration yet: `os-upgrade config apply -f FILE` makes one
> put-config a expect=some
  = refused: the configuration is not the one you expect: there is none
> put-config a expect=none
  + config-replaced actor=admin config=(worker-applications=[(name=a)]) difference=[(after=(worker-applications=[(name=a)]) path=)]
  = created
> put-config b expect=none
  = refused: the configuration is not the one you expect; its tag is now "1-5cf210b48512b0af": read it again
> put-config b expect=some
  + config-replaced actor=admin config=(worker-applications=[(name=b)]) difference=[(after=[(name=b)] before=[(name=a)] path=worker-applications)]
  = done
> put-config c expect=1-0,2-0
  = refused: the configuration is not the one you expect; its tag is now "2-60645047337390a6": read it again
> put-config a,a expect=none
  = refused: the configuration is not the one you expect; its tag is now "2-60645047337390a6": read it again
> put-config c rollout/max-concurrent=2 rollout/max-failures=3
  + config-replaced actor=admin config=(rollout=(max-concurrent=2 max-failures=3) worker-applications=[(name=c)]) difference=[(after=[(name=c)] before=[(name=b)] path=worker-applications) (after=(max-concurrent=2 max-failures=3) path=rollout)]
  = done
> put-config c rollout/max-concurrent=1 rollout/max-failures=3
  + config-replaced actor=admin config=(rollout=(max-failures=3) worker-applications=[(name=c)]) difference=[(after=1 before=2 path=rollout/max-concurrent)]
  = done
> put-config c
  + config-replaced actor=admin config=(worker-applications=[(name=c)]) difference=[(before=(max-failures=3) path=rollout)]
  = done
> delete-config validate
  = valid
> delete-config expect=none
  = refused: the configuration is not the one you expect; its tag is now "5-6bcdaee7d85b07a9": read it again
> delete-config expect=1-0
  = refused: the configuration is not the one you expect; its tag is now "5-6bcdaee7d85b07a9": read it again
> delete-config expect=1-0,5-6bcdaee7d85b07a9 validate
  = valid
# A run continues with the configuration it started with, also after that is deleted.
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=[(name=debian)] before=[(name=c)] path=worker-applications)]
  = done
> host h1
> trigger r1
  + run-started hosts=[(application=debian group=default host=h1)] not-after=2026-11-21T05:00:00Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
> put-config other rollout/max-concurrent=7
  + config-replaced actor=admin config=(rollout=(max-concurrent=7) worker-applications=[(name=other)]) difference=[(after=[(name=other)] before=[(name=debian)] path=worker-applications) (after=(max-concurrent=7) path=rollout)]
  = done
> delete-config
  + config-replaced actor=admin config=null difference=[(before=(rollout=(max-concurrent=7) worker-applications=[(name=other)]) path=)]
  = done
> delete-config
  = refused: there is no configuration yet: `os-upgrade config apply -f FILE` makes one
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
