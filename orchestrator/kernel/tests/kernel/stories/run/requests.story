# Every request in every state. Without a configuration and hosts:
> trigger r1
  = refused: there is no configuration yet: `os-upgrade config apply -f FILE` makes one
> trigger r1 timeout=0s
  = refused: there is no configuration yet: `os-upgrade config apply -f FILE` makes one
> trigger r1 validate
  = refused: there is no configuration yet: `os-upgrade config apply -f FILE` makes one
> cancel
  = refused: no run is active
> explain h1
  no worker has announced itself on it | why=not-announced
> put-config a,a
  = refused: worker-applications: "a" is listed twice
> put-config a rollout/max-concurrent=0
  = refused: rollout/max-concurrent: must be at least 1
> put-config a,a validate
  = refused: worker-applications: "a" is listed twice
> put-config a validate
  = valid
> put-config a
  + config-replaced actor=admin config=(worker-applications=[(name=a)]) difference=[(after=(worker-applications=[(name=a)]) path=)]
  = created
> put-config a
  = done
> put-config a validate
  = valid
> put-config a,debian
  + config-replaced actor=admin config=(worker-applications=[(name=a) (name=debian)]) difference=[(after=[(name=a) (name=debian)] before=[(name=a)] path=worker-applications)]
  = done
> trigger r1
  = refused: no host has announced a worker of the configured applications (a, debian)
> explain h1
  no worker has announced itself on it | why=not-announced
> host h1
> explain h1
  no run is active; no run starts automatically: no maintenance windows are configured | why=no-run,no-windows
> host h2 unreachable
> explain h2
  it is unreachable: no heartbeat arrives from it; no run is active; no run starts automatically: no maintenance windows are configured | why=silent,no-run,no-windows
> clock 31
> trigger r1
  = refused: the orchestrator's clock is 31 s ahead of NATS; no run starts until the time is certain
> trigger r1 validate
  = refused: the orchestrator's clock is 31 s ahead of NATS; no run starts until the time is certain
> clock trusted
> trigger r1 timeout=0s
  = refused: timeout: must be at least 1s
> trigger r1 timeout=0s validate
  = refused: timeout: must be at least 1s
> trigger r1 validate
  = valid
> cancel
  = refused: no run is active
# Preparing:
> trigger r1 timeout=1s
  + run-started hosts=[(application=debian group=default host=h1) (application=debian group=default host=h2 skipped=unreachable)] not-after=2026-11-21T01:00:01Z rollout=() run=r1 trigger=(operator actor=admin)
  = done
> trigger r2
  = refused: run r1 is active: `os-upgrade run watch` shows it
> trigger r1
  = refused: run r1 is active: `os-upgrade run watch` shows it
> trigger r2 validate
  = refused: run r1 is active: `os-upgrade run watch` shows it
> put-config none
  + config-replaced actor=admin config=(worker-applications=[]) difference=[(after=[] before=[(name=a) (name=debian)] path=worker-applications)]
  = done
> put-config debian validate
  = valid
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=[(name=debian)] before=[] path=worker-applications)]
  = done
> cancel
  + run-stopping cause=(cancelled actor=admin) run=r1
  + r1 h1: cancelled reason=(run-cancelled actor=admin)
  + run-ended counts=(cancelled=1 skipped=1) result=cancelled run=r1
  = done
# Ended:
> cancel
  = refused: no run is active
> trigger r2 validate
  = valid
> put-config none
  + config-replaced actor=admin config=(worker-applications=[]) difference=[(after=[] before=[(name=debian)] path=worker-applications)]
  = done
> trigger r2
  = refused: no application is configured, so no host takes part in runs: list them as worker-applications
