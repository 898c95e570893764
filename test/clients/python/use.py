"""openapi-python-client."""

import os
import uuid

from fencepost import AuthenticatedClient
from fencepost.api.locks import acquire_lock, get_entry, release_lock, renew_lock
from fencepost.api.look import list_locks
from fencepost.models import AcquireBody, HeldEntry, Problem

name = f"clients:python:{uuid.uuid4()}"
client = AuthenticatedClient(base_url=os.environ["FENCEPOST_URL"], token=os.environ["FENCEPOST_TOKEN"])

first = acquire_lock.sync(name, client=client, body=AcquireBody(ttl_seconds=30, holder="w1"))
assert isinstance(first, HeldEntry) and first.fence > 0, first
refused = acquire_lock.sync(name, client=client, body=AcquireBody())
assert isinstance(refused, Problem) and refused.code == "lock_held" and refused.waiting == 0, refused
assert refused.holders[0].fence == first.fence, refused
looked = get_entry.sync(name, first.id, client=client, lock_token=first.token)
assert isinstance(looked, HeldEntry) and looked.fence == first.fence, looked
renewed = renew_lock.sync(name, client=client, lock_token=first.token)
assert isinstance(renewed, HeldEntry) and renewed.expires_at >= first.expires_at, renewed
assert [lock.name for lock in list_locks.sync(client=client, prefix=name, consistent=True).locks] == [name]
assert release_lock.sync_detailed(name, client=client, lock_token=first.token).status_code == 204
assert release_lock.sync(name, client=client, lock_token=first.token).reason == "released"
