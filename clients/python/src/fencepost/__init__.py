"""Fencepost for Python: locks over HTTP that are renewed in time and stop the work in time."""

from ._asyncio import AsyncFencepost, AsyncHeld, AsyncPending
from ._errors import (
    BadWebhook,
    Cancelled,
    Deadlock,
    FencepostError,
    Forbidden,
    InvalidRequest,
    LimitExceeded,
    LockClosed,
    LockHeld,
    LockLost,
    LockReleased,
    ModeMismatch,
    NoAnswer,
    NotFound,
    Superseded,
    Unauthenticated,
    Unavailable,
    WaitTimeout,
)
from ._events import Event, verify_webhook
from ._look import Holder, Lock, LockSummary, Waiter
from ._options import Claim, Mode, ReleaseRequested
from ._threads import Fencepost, Held, Pending

__all__ = [
    "AsyncFencepost",
    "AsyncHeld",
    "AsyncPending",
    "BadWebhook",
    "Cancelled",
    "Claim",
    "Deadlock",
    "Event",
    "Fencepost",
    "FencepostError",
    "Forbidden",
    "Held",
    "Holder",
    "InvalidRequest",
    "LimitExceeded",
    "Lock",
    "LockClosed",
    "LockHeld",
    "LockLost",
    "LockReleased",
    "LockSummary",
    "Mode",
    "ModeMismatch",
    "NoAnswer",
    "NotFound",
    "Pending",
    "ReleaseRequested",
    "Superseded",
    "Unauthenticated",
    "Unavailable",
    "WaitTimeout",
    "Waiter",
    "verify_webhook",
]
