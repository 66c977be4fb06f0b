"""Configurations for worker.py: it takes them if there is cryptography 47 or newer, and its directory has the script
configure. That gets the name as argument and the content as input; revoke gets the name."""
import asyncio, base64, contextlib, json, os, subprocess, nats
try:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
except ImportError:
    Suite = None

async def start(nc, js, host, token, directory, state, save):  # What to announce, if anything.
    if not Suite or not (directory / "configure").exists():
        return {}
    configurations = Configurations(nc, js, host, token, directory, state, save)
    if not (key := await configurations.public_key()):
        return {}
    following = asyncio.create_task(configurations.follow())
    following.add_done_callback(lambda ended: ended.cancelled() or os._exit(1))
    return {"configures": key}

def private_key(path):  # Made once: what is sealed to it can be opened with no other.
    if not path.exists():
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(X25519PrivateKey.generate().private_bytes_raw())
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
    return X25519PrivateKey.from_private_bytes(path.read_bytes())

class Configurations:
    def __init__(self, nc, js, host, token, directory, state, save):
        self.nc, self.js, self.host, self.token, self.directory = nc, js, host, token, directory
        self.state, self.save, self.hinted, self.reported = state, save, asyncio.Event(), None
        self.api = "os-upgrade.js" if os.environ.get("OS_UPGRADE_NATS_CREDENTIALS") else "$JS.API"
        state.setdefault("accepted", None)
        state.setdefault("configurations", {})
        self.key = private_key(directory / "configuration.key")

    async def get(self, rest):  # None if there is none; an error if the host has no right to ask, or there is no stream.
        subject = f"{self.api}.DIRECT.GET.os-upgrade:desired.os-upgrade:desired.{self.token}.{rest}"
        answer = await self.nc.request(subject, timeout=5)
        if (answer.headers or {}).get("Nats-Subject"):
            return answer.data
        if (answer.headers or {}).get("Status") == "404":
            return None
        raise RuntimeError("the answer is no message of the stream")

    async def public_key(self):  # What to announce as `configures`; None if the host cannot read.
        try:
            await self.get("manifest")
        except (nats.errors.Error, RuntimeError):
            return None
        return base64.urlsafe_b64encode(self.key.public_key().public_bytes_raw()).decode().rstrip("=")

    async def content(self, item):
        sealed = await self.get(f"item.{item['id']}")
        if sealed is None:
            raise RuntimeError("the item is not in the stream")
        lines = "os-upgrade item 1", self.host, item["kind"], item["name"], item["epoch"], item["sequence"]
        info = "".join(f"{line}\n" for line in lines).encode()
        suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
        header, _, content = suite.decrypt(sealed, self.key, info=info).partition(b"\n")
        if json.loads(header).get("files"):
            raise RuntimeError("this worker places no files")
        return content

    async def run(self, script, name, content):  # Before that, what is in force for the name is no longer known.
        self.save(configurations={**self.state["configurations"], name: None})
        ended = await asyncio.to_thread(subprocess.run, [self.directory / script, name], cwd=self.directory,
            input=content, capture_output=True)
        if ended.returncode:
            raise RuntimeError(f"{script}: {' '.join(ended.stderr[-200:].decode(errors='replace').split())}")

    async def follow(self):
        await self.nc.subscribe(f"os-upgrade.desired.{self.token}", cb=self.hint)
        while True:
            self.hinted.clear()
            with contextlib.suppress(nats.errors.Error, RuntimeError):
                if (payload := await self.get("manifest")) is not None:
                    await self.consider(payload)
                else:  # If the stream was lost, orchestrators may know nothing of this host.
                    await self.report(None, [], {})
            with contextlib.suppress(asyncio.TimeoutError):  # What has failed is tried again then.
                await asyncio.wait_for(self.hinted.wait(), 60)

    async def hint(self, _):
        self.hinted.set()

    async def consider(self, payload):
        accepted, refused, errors, items = self.state["accepted"], None, {}, []
        try:
            manifest = json.loads(payload)
            site, at, items = manifest["site"], [manifest["epoch"], manifest["sequence"]], manifest["items"]
            wanted = {item["name"]: item for item in items if item["kind"] == "configuration"}
        except (ValueError, KeyError, TypeError):
            refused = "malformed"
        else:
            refused = accepted and ("other-site" if site != accepted[0] else "older" if at < accepted[1] else None)
        if not refused:
            self.save(accepted=[site, at])
            for name in [name for name in self.state["configurations"] if name not in wanted]:
                try:
                    await self.run("revoke", name, b"")
                    self.save(configurations={known: id for known, id in self.state["configurations"].items() if known != name})
                except Exception as error:
                    errors[name] = str(error)
            for name, item in wanted.items():
                if self.state["configurations"].get(name) != item["id"]:
                    try:
                        await self.run("configure", name, await self.content(item))
                        self.save(configurations={**self.state["configurations"], name: item["id"]})
                    except Exception as error:
                        errors[name] = f"{type(error).__name__}: {error}"
        await self.report(refused, [] if refused else items, errors)

    async def report(self, refused, items, errors):
        if not self.state["accepted"]:
            return
        (site, (epoch, sequence)), in_force = self.state["accepted"], self.state["configurations"]
        others = [item for item in items if item["kind"] != "configuration"]
        names = [item["name"] for item in items if item["kind"] == "configuration"]
        said = [{"kind": "configuration", "name": name, "id": in_force.get(name), "error": errors.get(name, "")[:100] or None}
            for name in [*names, *(name for name in in_force if name not in names)]]
        said += [{"kind": item["kind"], "name": item["name"], "error": "this worker knows no such items"} for item in others]
        said = [{key: value for key, value in item.items() if value is not None} for item in said]
        report = {"site": site, "epoch": epoch, "sequence": sequence, "items": said, **({"refused": refused} if refused else {})}
        current = report, self.nc.stats["reconnects"]  # The stream may have been created again meanwhile.
        if current != self.reported:
            await self.js.publish(f"os-upgrade:applied.{self.token}", json.dumps(report).encode())
            self.reported = current
