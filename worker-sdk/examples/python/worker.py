"""A worker for one host: worker.py NATS_URL HOST DIRECTORY. It runs the scripts prepare, upgrade (which asks for a
reboot with exit status 3), reboot and versions of DIRECTORY. Any trouble ends it: run it under what starts it again."""
import asyncio, json, os, pathlib, ssl, sys, time, urllib.parse, nats
HOST, DIRECTORY = sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
TOKEN = urllib.parse.quote(HOST, safe="").replace(".", "%2E").replace("~", "%7E")
BOOT = pathlib.Path(os.environ.get("BOOT_ID_FILE", "/proc/sys/kernel/random/boot_id")).read_text()
STATE = DIRECTORY / "state.json"  # A command is known in it by the time at which the stream stored it.
state = dict(settled="", prepared_until="", upgrade="", reboot_due="", reboots=0, answer=["", ""], versions={})
state.update(json.loads(STATE.read_text()) if STATE.exists() else {})
CREDENTIALS, CA, *PAIR = (os.environ.get(f"OS_UPGRADE_NATS_{n}") for n in ("CREDENTIALS", "CA", "CERTIFICATE", "KEY"))

def save(**changes):  # The file is the old or the new one whatever happens, and the new one when this returns.
    state.update(changes)
    with open(f"{STATE}.new", "w") as file:
        file.write(json.dumps(state)), file.flush(), os.fsync(file.fileno())
    os.replace(f"{STATE}.new", STATE), os.fsync(directory := os.open(DIRECTORY, os.O_RDONLY)), os.close(directory)

async def run(script, *arguments):  # What to answer, and what the script printed.
    process = await asyncio.create_subprocess_exec(DIRECTORY / script, *arguments, cwd=DIRECTORY, stdout=-1, stderr=-1)
    output, errors = await process.communicate()
    error = f"{script}: {errors[-1000:].decode(errors='replace')}"
    return {0: "done", 3: "reboot-required"}.get(process.returncode, error), output

async def execute(at, command):  # The result to answer with; None for what is acknowledged without a reply.
    action, resumed, result, changes = command.get("action"), state["upgrade"] == at, None, {}
    now, until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), command.get("not-after") or "9999"
    answer = dict([state["answer"]]).get(at)
    if answer or at <= state["settled"] or HOST not in command.get("hosts", []) + [command.get("host")]:
        return answer
    if action == "prepare" and until >= now:
        save(prepared_until="", reboot_due="")
        result, _ = await run("prepare")
        changes = {"prepared_until": until if result == "done" else ""}
    elif action == "upgrade" and (resumed or state["prepared_until"] >= now):
        save(prepared_until="", reboot_due="", upgrade=at)
        result, _ = await run("upgrade", *["resume"] if resumed else [])
        changes = {"reboot_due": BOOT if result == "reboot-required" else "", "reboots": 0}
    elif action == "reboot" and state["reboot_due"] == BOOT and state["reboots"] < 3:
        save(reboots=state["reboots"] + 1)
        result, _ = await run("reboot")
        if result == "done":  # Now this process is ended, or the host does not reboot; the command comes again.
            sys.exit(await asyncio.sleep(300))
    elif action == "reboot":
        result = "the host does not reboot" if state["reboot_due"] == BOOT else "done"
    return save(answer=[at, result], **changes) or result

async def every(seconds, do, *arguments):
    while await do(*arguments) is None:
        await asyncio.sleep(seconds)

async def main():
    trust, durable, stream = ssl.create_default_context(cafile=CA), f"worker-{TOKEN}", "os-upgrade:control"
    all(PAIR) and trust.load_cert_chain(*PAIR)
    nc = await nats.connect(sys.argv[1], max_reconnect_attempts=-1, user_credentials=CREDENTIALS, tls=trust)
    js = nc.jetstream(prefix="os-upgrade.js" if CREDENTIALS else "$JS.API")
    beats = asyncio.create_task(every(10, nc.publish, f"os-upgrade.presence.{TOKEN}"))
    says = json.dumps({"host": HOST, "application": "python-worker", "heartbeats": True})
    await js.publish(f"os-upgrade:workers.python-worker.{TOKEN}", says.encode())
    if CREDENTIALS:  # Only the orchestrator may make the consumer.
        await nc.request(f"os-upgrade.consumer.{TOKEN}", b'{"ack-wait-secs":10}', timeout=5)
    else:
        await js.add_consumer(stream, durable_name=durable, filter_subject=f"os-upgrade:control.command.{TOKEN}",
            ack_policy="explicit", ack_wait=10, max_ack_pending=1, num_replicas=1, deliver_policy="last_per_subject")
    commands = await js.pull_subscribe_bind(durable, stream)
    while True:
        if (versions := json.loads((await run("versions"))[1])) != state["versions"]:
            await js.publish(f"os-upgrade:versions.{TOKEN}", json.dumps(versions).encode()), save(versions=versions)
        try:
            [message] = await commands.fetch(timeout=30)
        except nats.errors.TimeoutError:
            await commands.consumer_info()  # An error if it has gone.
            continue
        alive, at = asyncio.create_task(every(3, message.in_progress)), message.metadata.timestamp.isoformat()
        if (result := await execute(at, command := json.loads(message.data))) is not None:
            reply = json.dumps({"action": command["action"], "result": result}).encode()
            headers = {"Os-Upgrade-In-Reply-To": str(message.metadata.sequence.stream)}
            await js.publish(f"os-upgrade:control.reply.{TOKEN}", reply, headers=headers)
        alive.cancel(), await message.ack_sync(), save(settled=at, answer=["", ""])
asyncio.run(main())
