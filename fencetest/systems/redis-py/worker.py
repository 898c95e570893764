"""A client of redis-py's Lock, which a thread extends: redis-py has no renewal of its own."""

import json
import os
import sys
import threading

import redis
from redis.exceptions import LockNotOwnedError, RedisError

host, port = os.environ["FENCETEST_SERVER"].split(":")
client = redis.Redis(host=host, port=int(port))
lock, stop, held = None, threading.Event(), False


def say(event, **more):
    print(json.dumps({"event": event, **more}) + "\n", end="", flush=True)


def renew(lock, stop):
    global held
    while not stop.wait(lock.timeout / 3):
        try:
            lock.reacquire()
        except LockNotOwnedError:
            if not stop.is_set():
                held = False
                say("lost")
            return
        except RedisError:
            pass  # the next try may reach the server in time


def do(request):
    global lock, stop, held
    if request["do"] == "acquire":
        lock = client.lock(request["name"], timeout=request["ttl_ms"] / 1000, thread_local=False)
        held = lock.acquire(blocking_timeout=request["wait_ms"] / 1000)
        say("held" if held else "not_held")
        if held:
            stop = threading.Event()
            threading.Thread(target=renew, args=(lock, stop), daemon=True).start()
    elif request["do"] == "check":
        say("held" if held and lock.owned() else "lost")
    else:
        stop.set()
        lock.release()
        say("released")


client.ping()
say("ready")
for line in sys.stdin:
    try:
        do(json.loads(line))
    except LockNotOwnedError:
        say("lost")
    except Exception as error:
        say("error", text=repr(error))
