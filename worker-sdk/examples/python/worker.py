"""A worker for one host, `worker.py HOST DIRECTORY`, with NATS at $OS_UPGRADE_NATS_URL. It runs the scripts prepare,
upgrade (exit status 194: reboot required), reboot and versions of DIRECTORY. Any error ends it: let systemd restart it."""
import asyncio, json, os, pathlib, sqlite3, ssl, subprocess, sys, time, urllib.parse, nats, configuration
HOST, DIRECTORY = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
TOKEN = urllib.parse.quote(HOST, safe="").replace(".", "%2E").replace("~", "%7E")
BOOT = pathlib.Path(os.environ.get("BOOT_ID_FILE", "/proc/sys/kernel/random/boot_id")).read_text()
URL, CREDENTIALS, CA = (os.environ.get(f"OS_UPGRADE_NATS_{name}") for name in ("URL", "CREDENTIALS", "CA"))
database = sqlite3.connect(DIRECTORY / "state.db", isolation_level=None)  # Writes are synced immediately.
database.executescript("PRAGMA synchronous = EXTRA; CREATE TABLE IF NOT EXISTS state (id PRIMARY KEY, value)")
state = {"settled": "", "answers": {}, "prepared": {}, "upgrade": "", "reboot_due": "", "reboots": 0, "versions": {}}
state.update(json.loads(next(database.execute("SELECT value FROM state"), ["{}"])[0]))

def save(answer=None, **changes):  # The last answers are kept: the stream may be rolled back to before them.
    state.update(changes, answers=dict([*state["answers"].items(), *filter(None, [answer])][-8:]))
    database.execute("REPLACE INTO state VALUES (0, ?)", [json.dumps(state)])

async def run(script, *arguments, **changes):  # Saves changes first. Returns the answer and the output.
    save(**changes)
    ended = await asyncio.to_thread(subprocess.run, [DIRECTORY / script, *arguments], cwd=DIRECTORY, capture_output=True)
    error = f"{script}: {ended.stderr[-1000:].decode(errors='replace')}"
    return {0: "done", 194: "reboot-required"}.get(ended.returncode, error), ended.stdout

async def execute(id, of_run, command):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    action, until, resumed = command.get("action"), command.get("not-after") or "9999", state["upgrade"] == id
    if action == "prepare" and until >= now:
        result, _ = await run("prepare", prepared={}, reboot_due="", reboots=0)
        save((id, result), prepared={of_run: until} if result == "done" else {})
    elif action == "upgrade" and (resumed or state["prepared"].get(of_run, "") >= now):
        result, _ = await run("upgrade", "resume" if resumed else "begin", upgrade=id, prepared={}, reboot_due="")
        save((id, result), reboot_due=BOOT if result == "reboot-required" else "")
    elif action == "reboot" and state["reboot_due"] == BOOT and state["reboots"] < 3:
        outcome, _ = await run("reboot", reboots=state["reboots"] + 1)
        await asyncio.sleep(300 if outcome == "done" else 0)  # Ends this process; then the command is redelivered.
        save((id, f"the host has not rebooted: {outcome}"))
    elif action == "reboot":
        save((id, "the host does not reboot" if state["reboot_due"] == BOOT else "done"))

async def every(seconds, do, *arguments):
    while True:
        await do(*arguments)
        await asyncio.sleep(seconds)

async def handle(message, js):
    at, command = message.metadata.timestamp.isoformat(), json.loads(message.data)
    id = (message.headers or {}).get("Os-Upgrade-Command-Id", at)  # Or when the stream stored it.
    is_new = id not in state["answers"] and (id != at or at > state["settled"])
    alive = asyncio.create_task(every(3, message.in_progress))
    of_run = (message.headers or {}).get("Os-Upgrade-Run", "")
    if is_new and HOST in command.get("hosts", [command.get("host")]):
        await execute(id, of_run, command)
    if id in state["answers"]:  # Anything else is only acknowledged.
        reply = {"action": command["action"], "result": state["answers"][id]}
        names = {"Os-Upgrade-In-Reply-To": str(message.metadata.sequence.stream), "Os-Upgrade-Run": of_run}
        headers = {name: text for name, text in names.items() if text}
        await js.publish(f"os-upgrade:control.reply.{TOKEN}", json.dumps(reply).encode(), headers=headers)
    alive.cancel()
    await message.ack_sync()
    save(settled=max(at, state["settled"]))

async def main():
    nc = await nats.connect(URL, user_credentials=CREDENTIALS, tls=ssl.create_default_context(cafile=CA))
    js = nc.jetstream(prefix="os-upgrade.js" if CREDENTIALS else "$JS.API")
    beats = asyncio.create_task(every(10, nc.publish, f"os-upgrade.presence.{TOKEN}"))
    configured = await configuration.start(nc, js, HOST, TOKEN, DIRECTORY, state, save)
    says = {"host": HOST, "application": "python-worker", "heartbeats": True, **configured}
    await js.publish(f"os-upgrade:workers.python-worker.{TOKEN}", json.dumps(says).encode())
    if CREDENTIALS:  # Only the orchestrator may create the consumer.
        await nc.request(f"os-upgrade.consumer.{TOKEN}", b'{"ack-wait-secs":10}', timeout=5)
    else:
        await js.add_consumer("os-upgrade:control", durable_name=f"worker-{TOKEN}", ack_wait=10, max_ack_pending=1,
            filter_subject=f"os-upgrade:control.command.{TOKEN}", num_replicas=1, deliver_policy="last_per_subject")
    commands = await js.pull_subscribe_bind(f"worker-{TOKEN}", "os-upgrade:control")
    while True:
        versions = json.loads((await run("versions"))[1])
        if versions != state["versions"]:
            await js.publish(f"os-upgrade:versions.{TOKEN}", json.dumps(versions).encode())
            save(versions=versions)
        try:
            [message] = await commands.fetch(timeout=30)
        except nats.errors.TimeoutError:
            await commands.consumer_info()  # An error if it no longer exists.
        else:
            await handle(message, js)
asyncio.run(main())
