#!/usr/bin/env python3
"""A provider of kind `hooks`: host h01 is to have what the file h01 in DIRECTORY holds, and nothing without it. Changes are called back.

usage: hook_provider.py DIRECTORY ADDRESS:PORT [CERTIFICATE KEY]    with the bearer token of `credentials`, if any, in HOOKS_SECRET"""
import hashlib, hmac, http.server, json, os, pathlib, ssl, sys, threading, time, urllib.request, uuid

directory, (address, port), tls = pathlib.Path(sys.argv[1]), sys.argv[2].rsplit(":", 1), sys.argv[3:]
secret = os.environ.get("HOOKS_SECRET")
told, latest = {}, {}  # What each host was told last, and the last call with a token: it has the endpoint of call-backs, too.

def content(host):
    path = directory / host
    return path.read_text() if path.name == host and path.is_file() else None

def answer(call):
    host = call["device_metadata"]["name"]
    if call["callback_token"]:  # `providers test` may have none.
        latest.update(call)
    print(call["event"], host, flush=True)
    text = told[host] = content(host)
    member = {key: call[key] for key in ("event", "event_uuid", "config_name")} | {"device_name": host}
    if text is None:  # Nothing, or nothing any more.
        return member | {"configuration": None}
    is_known = hashlib.sha256(text.encode()).hexdigest() == call["last_config_hash"]
    return member if is_known else member | {"configuration": text, "poll_interval": "30m"}

class Hooks(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if secret and not hmac.compare_digest(self.headers.get("Authorization", ""), f"Bearer {secret}"):
            return self.send_error(401)
        answers = [answer(call) for call in json.loads(body)]
        is_news = any("configuration" in member for member in answers)
        body = json.dumps(answers).encode() if is_news else b""
        self.send_response(200 if is_news else 304)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

def call_back(hosts):
    member = {"event": "ON_CONFIG_UPDATE", "event_uuid": str(uuid.uuid4()), "config_name": latest["config_name"]}
    body = json.dumps([member | {"device_names": list(hosts)}]).encode()
    headers = {"Authorization": f"Bearer {latest['callback_token']}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(latest["callback_endpoint"], body, headers), timeout=10) as said:
        print("called back:", said.read().decode(), flush=True)

def follow():
    while True:
        time.sleep(1)
        if changed := {host: text for host, text in list(told.items()) if content(host) != text}:
            for host in changed:
                told.pop(host)  # It is told anew when its next call comes.
            try:
                call_back(changed)
            except OSError as error:  # Again in a second. With 401 the token was replaced: the next call has another.
                print("cannot call back:", error, flush=True)
                for host, text in changed.items():
                    told.setdefault(host, text)

server = http.server.ThreadingHTTPServer((address, int(port)), Hooks)
if tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*tls)
    server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=follow, daemon=True).start()
server.serve_forever()
