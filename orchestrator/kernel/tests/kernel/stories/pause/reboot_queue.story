# While a site is paused, no entry of the reboot queue begins.
> host h1 boot=a1
> host h2 boot=b1
> put-config debian
  + config-replaced actor=admin config=(worker-applications=[(name=debian)]) difference=[(after=(worker-applications=[(name=debian)]) path=)]
  = created
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1 h2
  + reboots-queued actor=admin hosts=[h1 h2]
  + reboot event=(started group=default provider=embedded) host=h1 index=0
  + reboot event=(reboot-began boot-id=a1) host=h1 index=0
  = created
  ! send rq-0-1795222800/h1/reboot/1 to leave a1
> pause
  + site-paused actor=admin cause=operator reason="the fair is on"
  = done
> sent h1 reboot run=rq-0-1795222800
  + reboot event=(command-sent attempt=1 sequence=2) host=h1 index=0
  ! nothing
> host h1 boot=a2
> reply h1 reboot run=rq-0-1795222800 done
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
> queue
  1 h2 queued: the site is paused by admin: the fair is on | paused
> queue
  1 h2 queued: the site is paused by admin: the fair is on | paused
> resume
  + site-resumed actor=admin
  + reboot event=(started group=default provider=embedded) host=h2 index=1
  + reboot event=(reboot-began boot-id=b1) host=h2 index=1
  = done
  ! send rq-1-1795222800/h2/reboot/1 to leave b1
