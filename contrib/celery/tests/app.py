"""The application under test: what its tasks do is recorded in Redis."""

import os
import time

import fencepost_celery
from celery import Celery
from fencepost import Fencepost
from fencepost_celery import Single
from redis import Redis

SOCKET = os.environ["REDIS_SOCKET"]

app = Celery("app", broker=f"redis+socket://{SOCKET}", set_as_current=False)
app.fencepost = Fencepost(os.environ["FENCEPOST_URL"], os.environ["FENCEPOST_TOKEN"])
app.conf.task_ignore_result = True
app.conf.worker_prefetch_multiplier = 1
app.conf.task_routes = {"app.ticked": {"queue": "beat"}}
app.conf.beat_schedule = {"tick": {"task": "app.ticked", "schedule": 0.5}}
app.conf.beat_max_loop_interval = 5

redis = Redis(unix_socket_path=SOCKET)


class Beat(fencepost_celery.Scheduler):
    lock_ttl = 8.0


@app.task(bind=True)
def ticked(self):
    """Runs in one process, so the list has the order in which beats have sent."""
    redis.rpush("ticks", self.request.headers["fencepost_fence"])


@app.task(base=Single, bind=True, lock_ttl=8.0, lock_wait=120.0)
def work(self, endless=False):
    fence = fencepost_celery.held.get().fence
    if endless:
        redis.rpush("endless", f"{os.getpid()} {fence}")
    try:
        for _ in range(10**9 if endless else 5):
            redis.rpush("steps", fence)
            time.sleep(0.05)
    except Exception as error:
        redis.rpush("failed", type(error).__name__)
        raise
    redis.rpush("done", fence)


@app.task(base=Single, bind=True)
def once(self):
    """Runs until the test lets it end."""
    redis.rpush("runs", self.request.id)
    redis.blpop("end", timeout=120)


@app.task
def after():
    redis.rpush("after", 1)
