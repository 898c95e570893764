"""Runs many jobs, a few at a time, without waiting for any of them.

Each job asks for the semaphore and hangs up. When its turn has come the server calls back; the
call has the job's token and fence. The job renews, which says that the grant was taken,
works, and releases. Only Python's standard library is used.
"""

import base64
import hashlib
import hmac
import json
import os
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

URL = os.environ["FENCEPOST_URL"]
TOKEN = os.environ["FENCEPOST_TOKEN"]
JOBS = int(os.environ.get("JOBS", "100"))
LIMIT = int(os.environ.get("LIMIT", "4"))
WORK = float(os.environ.get("WORK", "0.1"))  # seconds that a job takes
LOCK = "reports:nightly"
RUN = os.urandom(8).hex()  # a key that was used is used up: another run has keys of its own


def call(method, path, body=None, headers=None):
    """Returns status and answer. What was not answered, or was too much, is sent again."""
    data = None if body is None else json.dumps(body).encode()
    for pause in (0.1, 0.5, 2, 5, None):
        request = urllib.request.Request(URL + path, method=method, data=data)
        for name, value in {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json", **(headers or {})}.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or pause is None:
                return error.code, json.loads(error.read())
        except OSError:
            if pause is None:
                raise
        time.sleep(pause)


class Batch:
    """What is known of the jobs."""

    def __init__(self):
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.secret = b""
        self.seen = set()  # ids of calls: each may come twice
        self.fences = []  # in the order of the grants as they are told
        self.running = self.most = self.finished = 0
        self.failed = []

    def verify(self, headers, body):
        """Whether the call is the server's, and of now."""
        identity, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
            return False
        mac = hmac.new(self.secret, f"{identity}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        want = "v1," + base64.b64encode(mac).decode()
        return any(hmac.compare_digest(want, given) for given in headers.get("webhook-signature", "").split())

    def told(self, identity, event):
        """Begins a job whose turn has come, once."""
        with self.lock:
            if identity in self.seen:
                return
            self.seen.add(identity)
        if event["type"] != "lock.acquired":
            return self.end(event["type"])
        threading.Thread(target=self.run, args=(event["data"]["entry"],), daemon=True).start()

    def run(self, entry):
        token = {"Lock-Token": entry["token"]}
        status, answer = call("PUT", f"/locks/{LOCK}/renew", headers=token)  # the grant is taken
        if status != 200:
            return self.end(answer["code"])
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
            self.fences.append(entry["fence"])
        time.sleep(WORK)  # the work; whatever it writes to would be shown the fence
        with self.lock:
            self.running -= 1
        status, answer = call("DELETE", f"/locks/{LOCK}", headers=token)
        self.end(None if status == 204 else answer["code"])

    def end(self, fault):
        with self.lock:
            self.finished += 1
            if fault:
                self.failed.append(fault)
            if self.finished == JOBS:
                self.done.set()


def receiver(batch):
    class Receiver(BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self):
            body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 64 * 1024))
            if not batch.verify(self.headers, body):
                return self.answer(400)
            batch.told(self.headers["webhook-id"], json.loads(body))
            self.answer(204)  # at once: the work is done after it

        def answer(self, status):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 1024

    server = Server(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/turn"


def ask(number, url):
    """Puts a job into the queue. Asked again with its key, it is the same job."""
    body = {
        "mode": "semaphore", "limit": LIMIT, "ttl_seconds": 30, "wait_seconds": 3600,
        "async": True, "callback_url": url, "metadata": {"job": str(number)},
    }
    status, answer = call("POST", f"/locks/{LOCK}", body, {"Idempotency-Key": f"{RUN}-{number}"})
    if status not in (201, 202):  # 201: there was room at once; the call comes all the same
        raise SystemExit(f"job {number}: {status} {answer}")


def main():
    batch = Batch()
    status, made = call("POST", "/webhooks/callback-secret/rotate")
    if status >= 300:
        raise SystemExit(f"no callback secret: {made}")
    batch.secret = base64.b64decode(made["secret"].removeprefix("whsec_"))
    url = receiver(batch)
    began = time.time()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ask(number, url), range(JOBS)))
    print(f"{JOBS} jobs wait for {LOCK}, at most {LIMIT} at a time; all requests were answered within {time.time() - began:.1f} s")
    if not batch.done.wait(timeout=600):
        raise SystemExit(f"only {batch.finished} of {JOBS} jobs ended")
    took, ideal = time.time() - began, JOBS * WORK / LIMIT
    print(f"{JOBS - len(batch.failed)} done, {len(batch.failed)} failed, never more than {batch.most} at once; {took:.1f} s, {ideal:.1f} s if it all were work")
    if batch.failed or batch.most > LIMIT or len(set(batch.fences)) != JOBS:
        raise SystemExit(f"not as it should be: {batch.failed[:5]}")


main()
