# Hosts without Kubernetes: the command reboots, and the boot that the worker announces tells when the host is back.
> settings default:3 reboots=2 command=2m
  + settings-adopted settings=(auto-approve=true groups=(default=3) reboot=(command=(within=2m) max-concurrent=2 unreachable-max=0))
> host h1 boot=a1 specification-only
> host h2
> host h3 boot=c1
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1 h2 h3
  + reboots-queued actor=admin hosts=[h1 h2 h3]
  + reboot event=(started group=default provider=embedded) host=h1 index=0
  + reboot event=(attempt-due boot-id=a1 node=h1) host=h1 index=0
  + reboot event=attempt-began host=h1 index=0
  + reboot event=(started group=default provider=embedded) host=h3 index=2
  + reboot event=(attempt-due boot-id=c1 node=h3) host=h3 index=2
  + reboot event=attempt-began host=h3 index=2
  = created
  ! reboot h1 by command, attempt 1, reboot h3 by command, attempt 1
> rq add h9
  = refused: h9 is no node of the cluster and has announced no worker; nothing is queued
> queue
  0 h1 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
  1 h2 queued: 2 are under way, as many as may be at once | full
  2 h3 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
> command h1 succeeded
  + reboot event=attempt-succeeded host=h1 index=0
  ! reboot h3 by command, attempt 1
> queue
  0 h1 rebooting: the reboot command succeeded at 2026-11-21T01:00:00Z, and the host is not back | boot-awaited
  1 h2 queued: 2 are under way, as many as may be at once | full
  2 h3 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
> host h1 boot=a2 specification-only
> tick
  + reboot event=rebooted host=h1 index=0
  + slot-released host=h1 why=rebooted
> queue
  1 h2 queued: nothing says which boot it runs, and [reboot] boot-check-command is not set | no-boot
  2 h3 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
# It fails: nothing more is tried by itself, but a host that has rebooted all the same is back.
> command h3 failed exit status 255
  + reboot event=(failed reason=(reboot-command-failed detail="exit status 255" output=printed)) host=h3 index=2
  ! nothing
> queue
  1 h2 queued: nothing says which boot it runs, and [reboot] boot-check-command is not set | no-boot
  2 h3 rebooting: the reboot command failed: exit status 255; `os-upgrade reboot-queue cancel` undoes what was begun if the host stays in its boot; once the host is looked after, `give-up` removes the entry | failed
> host h3 boot=c2 reachable
> tick
  + reboot event=rebooted host=h3 index=2
  + slot-released host=h3 why=rebooted
> queue
  1 h2 queued: nothing says which boot it runs, and [reboot] boot-check-command is not set | no-boot
# Nobody knows whether the command of a leader that is gone has had an effect.
> rq cancel 1
  + reboot event=(cancelled actor=admin) host=h2 index=1
  + reboot event=removed host=h2 index=1
  = done
> rq add h3
  + reboots-queued actor=admin hosts=[h3]
  + reboot event=(started group=default provider=embedded) host=h3 index=3
  + reboot event=(attempt-due boot-id=c2 node=h3) host=h3 index=3
  + reboot event=attempt-began host=h3 index=3
  = created
  ! reboot h3 by command, attempt 1
> rq give-up 3
  = refused: the reboot command is being run for h3: try again once it has ended
> takeover
> leadership-began
  + reboot event=(attempt-unknown reason=(reboot-unknown detail="the leader that ran it does not lead any more" output=)) host=h3 index=3
  ! nothing
> fence
  + fenced leader=one sequence=2
  + fence-passed sequence=2
> queue
  3 h3 rebooting: whether the reboot command has had an effect is not known: the leader that ran it does not lead any more; unknown since 2026-11-21T01:00:00Z; it is run again from 2026-11-21T01:32:00Z on if the host is ready in its old boot | retry-awaited
# It is run again only once the host could be back, and is ready in its old boot.
> wait 1925
> tick
  + reboot event=(attempt-due boot-id=c2 node=h3) host=h3 index=3
  + reboot event=attempt-began host=h3 index=3
  ! reboot h3 by command, attempt 2
> host h3 boot=c2 unreachable
> wait 10
> tick
> queue
  3 h3 rebooting: the reboot command is being run since 2026-11-21T01:32:05Z | command-runs
> host h3 boot=c2 reachable
> tick
> queue
  3 h3 rebooting: the reboot command is being run since 2026-11-21T01:32:05Z | command-runs
# What hangs is killed, and counts as unknown.
> command h3 unknown killed after 120000 ms
  + reboot event=(attempt-unknown reason=(reboot-unknown detail="killed after 120000 ms" output=printed)) host=h3 index=3
  ! nothing
> queue
  3 h3 rebooting: whether the reboot command has had an effect is not known: killed after 120000 ms; unknown since 2026-11-21T01:32:15Z; it is run again from 2026-11-21T02:04:15Z on if the host is ready in its old boot | retry-awaited
> rq cancel 3
  + reboot event=(cancelled actor=admin) host=h3 index=3
  = done
> queue
  3 h3 rebooting, to be cancelled: cancelled while its host was to reboot: what was begun is undone from 2026-11-21T02:04:15Z on if the host is ready in its old boot; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry | cancel-awaited
> host h3 boot=c3
> tick
  + reboot event=rebooted host=h3 index=3
  + slot-released host=h3 why=rebooted
> queue
  empty
# A host without heartbeats is never known to be ready, so that its command is not run again.
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started group=default provider=embedded) host=h1 index=4
  + reboot event=(attempt-due boot-id=a2 node=h1) host=h1 index=4
  + reboot event=attempt-began host=h1 index=4
  = created
  ! reboot h1 by command, attempt 1
> takeover
> leadership-began
  + reboot event=(attempt-unknown reason=(reboot-unknown detail="the leader that ran it does not lead any more" output=)) host=h1 index=4
  ! nothing
> queue
  4 h1 rebooting: whether the reboot command has had an effect is not known: the leader that ran it does not lead any more; unknown since 2026-11-21T01:32:15Z; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry | attempt-unknown
> rq give-up 4
  + reboot event=(given-up actor=admin reason="no power") host=h1 index=4
  = done
# The next entry names the one for which the slot is held.
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  = created
> queue
  5 h1 queued: its slot is held for entry 4 of the reboot queue since 2026-11-21T01:32:15Z | slot-held
> host h1 boot=a3 specification-only
> release default h1 mended
  + slot-released host=h1 why=operator
  + holder-released actor=admin group=default id=h1 reason=mended
  + reboot event=(started group=default provider=embedded) host=h1 index=5
  + reboot event=(attempt-due boot-id=a3 node=h1) host=h1 index=5
  + reboot event=attempt-began host=h1 index=5
  = done
  ! reboot h1 by command, attempt 1
# Without the command in the settings, the entry waits.
> settings default:3
  + settings-adopted settings=(auto-approve=true groups=(default=3))
> takeover
> leadership-began
  + reboot event=(attempt-unknown reason=(reboot-unknown detail="the leader that ran it does not lead any more" output=)) host=h1 index=5
  ! nothing
> wait 2000
> tick
> queue
  5 h1 rebooting: whether the reboot command has had an effect is not known: the leader that ran it does not lead any more; unknown since 2026-11-21T01:32:15Z; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry | attempt-unknown
> rq give-up 5
  + reboot event=(given-up actor=admin reason="no power") host=h1 index=5
  = done
> queue
  empty
