"""A client of Fencepost's package for Python."""

import json
import os
import sys
import threading

from fencepost import Fencepost, LockLost, WaitTimeout


def say(event, **more):
    print(json.dumps({"event": event, **more}) + "\n", end="", flush=True)


def watch(held):
    held.lost.wait()
    say("lost")


def acquire(request):
    wait, ttl = request["wait_ms"] / 1000, request["ttl_ms"] / 1000
    try:
        held = client.lock(request["name"], ttl=ttl, wait=wait)
    except WaitTimeout:
        say("not_held")
        return None
    threading.Thread(target=watch, args=(held,), daemon=True).start()
    say("held", fence=str(held.fence))
    return held


def do(request):
    global held
    if request["do"] == "acquire":
        held = acquire(request)
    elif request["do"] == "check":
        held.check()
        say("held")
    else:
        held.release()
        say("released")


# The script that installs the server makes the token.
cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
with open(os.path.join(cache, "fencetest", "fencepost", "token")) as token:
    client = Fencepost("http://" + os.environ["FENCETEST_SERVER"], token.read().strip())
held = None
say("ready")
for line in sys.stdin:
    try:
        do(json.loads(line))
    except LockLost:
        say("lost")
    except Exception as error:
        say("error", text=repr(error))
