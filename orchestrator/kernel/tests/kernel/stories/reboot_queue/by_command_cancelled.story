# An entry is cancelled after its command was run: it ends once the host is known not to reboot.
> settings default:3 reboots=3 command=2m
  + settings-adopted settings=(auto-approve=true groups=(default=3) reboot=(command=(within=2m) max-concurrent=3 unreachable-max=0))
> host h1 boot=a1 reachable
> host h2 boot=b1 reachable
> host h3 boot=c1 reachable
> fence
  + fenced leader=one sequence=1
  + fence-passed sequence=1
> rq add h1 h2 h3
  + reboots-queued actor=admin hosts=[h1 h2 h3]
  + reboot event=(started group=default provider=embedded) host=h1 index=0
  + reboot event=(attempt-due boot-id=a1 node=h1) host=h1 index=0
  + reboot event=attempt-began host=h1 index=0
  + reboot event=(started group=default provider=embedded) host=h2 index=1
  + reboot event=(attempt-due boot-id=b1 node=h2) host=h2 index=1
  + reboot event=attempt-began host=h2 index=1
  + reboot event=(started group=default provider=embedded) host=h3 index=2
  + reboot event=(attempt-due boot-id=c1 node=h3) host=h3 index=2
  + reboot event=attempt-began host=h3 index=2
  = created
  ! reboot h1 by command, attempt 1, reboot h2 by command, attempt 1, reboot h3 by command, attempt 1
# Nothing was run: there is nothing to wait for.
> command h1 not-started Resource temporarily unavailable
  + reboot event=(failed reason=(reboot-command-not-started detail="Resource temporarily unavailable")) host=h1 index=0
  ! reboot h2 by command, attempt 1, reboot h3 by command, attempt 1
> queue
  0 h1 rebooting: the reboot command could not be started: Resource temporarily unavailable; `os-upgrade reboot-queue cancel` undoes what was begun, and removes the entry | failed
  1 h2 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
  2 h3 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
> rq cancel 0
  + reboot event=(cancelled actor=admin) host=h1 index=0
  + reboot event=not-rebooted host=h1 index=0
  + slot-released host=h1 why=not-needed
  + reboot event=removed host=h1 index=0
  = done
> tick
> queue
  1 h2 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
  2 h3 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
# An exit status proves nothing: a management controller may have accepted the reboot.
> command h2 failed exit status 255
  + reboot event=(failed reason=(reboot-command-failed detail="exit status 255" output=printed)) host=h2 index=1
  ! reboot h3 by command, attempt 1
> rq cancel 1
  + reboot event=(cancelled actor=admin) host=h2 index=1
  = done
> tick
> queue
  1 h2 rebooting, to be cancelled: cancelled while its host was to reboot: what was begun is undone from 2026-11-21T01:32:00Z on if the host is ready in its old boot; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry | cancel-awaited
  2 h3 rebooting: the reboot command is being run since 2026-11-21T01:00:00Z | command-runs
# Nor does one of success.
> command h3 succeeded
  + reboot event=attempt-succeeded host=h3 index=2
  ! nothing
> rq cancel 2
  + reboot event=(cancelled actor=admin) host=h3 index=2
  = done
> wait 1915
> host h2 boot=b1 unreachable
> host h3 boot=c1 reachable
> tick
> queue
  1 h2 rebooting, to be cancelled: cancelled while its host was to reboot: what was begun is undone from 2026-11-21T01:32:00Z on if the host is ready in its old boot; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry | cancel-awaited
  2 h3 rebooting, to be cancelled: cancelled while its host was to reboot: what was begun is undone from 2026-11-21T01:32:00Z on if the host is ready in its old boot; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry | cancel-awaited
# Seen in its old boot, it has not rebooted, and will not.
> wait 10
> tick
  + reboot event=not-rebooted host=h3 index=2
  + slot-released host=h3 why=not-needed
  + reboot event=removed host=h3 index=2
> queue
  1 h2 rebooting, to be cancelled: cancelled while its host was to reboot: what was begun is undone from 2026-11-21T01:32:00Z on if the host is ready in its old boot; once the host is looked after, `os-upgrade reboot-queue give-up` removes the entry | cancel-awaited
> host h2 boot=b1 reachable
> tick
  + reboot event=not-rebooted host=h2 index=1
  + slot-released host=h2 why=not-needed
  + reboot event=removed host=h2 index=1
> queue
  empty
# One that has rebooted is back.
> rq add h1
  + reboots-queued actor=admin hosts=[h1]
  + reboot event=(started group=default provider=embedded) host=h1 index=3
  + reboot event=(attempt-due boot-id=a1 node=h1) host=h1 index=3
  + reboot event=attempt-began host=h1 index=3
  = created
  ! reboot h1 by command, attempt 1
> command h1 failed exit status 1
  + reboot event=(failed reason=(reboot-command-failed detail="exit status 1" output=printed)) host=h1 index=3
  ! nothing
> rq cancel 3
  + reboot event=(cancelled actor=admin) host=h1 index=3
  = done
> host h1 boot=a2 reachable
> tick
  + reboot event=rebooted host=h1 index=3
  + slot-released host=h1 why=rebooted
> queue
  empty
