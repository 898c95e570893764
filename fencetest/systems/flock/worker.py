"""Takes file locks with flock(2), as util-linux's flock --timeout does: a timer's signal ends a wait."""
import fcntl
import json
import os
import queue
import signal
import sys
import threading

commands = queue.Queue()


def read():
    for line in sys.stdin:
        commands.put(json.loads(line))
    os._exit(0)


def say(event):
    print(json.dumps(event), flush=True)


def expired(*_):
    raise TimeoutError


def acquire(name, seconds):
    file = open(os.path.join(os.environ["FENCETEST_DIR"], name), "a")
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        return file
    except TimeoutError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


signal.signal(signal.SIGALRM, expired)
threading.Thread(target=read, daemon=True).start()
say({"event": "ready"})
held = None
while True:
    command = commands.get()
    if command["do"] == "acquire":
        held = acquire(command["name"], command["wait_ms"] / 1000)
        say({"event": "held" if held else "not_held"})
    elif held is None:
        say({"event": "lost"})
    elif command["do"] == "check":
        say({"event": "held"})
    else:
        held.close()
        held = None
        say({"event": "released"})
