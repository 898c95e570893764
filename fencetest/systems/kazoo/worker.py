"""A client of kazoo's Lock, with the listener that its documents recommend."""

import json
import os
import sys

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import LockTimeout

session = int(os.environ["FENCETEST_TTL_MS"]) / 1000  # kazoo has no TTL of a lock
lock, held = None, False


def say(event, **more):
    print(json.dumps({"event": event, **more}) + "\n", end="", flush=True)


def watch(state):
    global held
    if state == KazooState.LOST and held:
        held = False
        say("lost")


def do(request):
    global lock, held
    if request["do"] == "acquire":
        lock = client.Lock("/locks/" + request["name"])
        try:
            held = lock.acquire(timeout=request["wait_ms"] / 1000)
        except LockTimeout:
            held = False
        say("held" if held else "not_held")
    elif request["do"] == "check":
        say("held" if held and client.state == KazooState.CONNECTED else "lost")
    else:
        was, held = held, False
        lock.release()
        say("released" if was else "lost")


client = KazooClient(hosts=os.environ["FENCETEST_SERVER"], timeout=session)
client.add_listener(watch)
client.start()
say("ready")
for line in sys.stdin:
    try:
        do(json.loads(line))
    except Exception as error:
        say("error", text=repr(error))
os._exit(0)  # without an end of the session
