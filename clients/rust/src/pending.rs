use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use crate::acquire::{Acquire, Target};
use crate::client::{Client, Counted};
use crate::errors::{lost, Error};
use crate::held::Held;
use crate::queue::{Acquisition, Goal, Queued};
use crate::types::{Claim, Entry, Event, EventEntry, Secret};

impl Client {
    /// Queues for a lock without waiting for it. Await what it returns to get a [`Pending`] entry;
    /// the lock may also be granted at once. The TTL has to be at least 15 s. If the call fails or
    /// is dropped, it takes back in the background what it may have left in the queue.
    pub fn async_acquire(&self, name: impl Into<String>) -> Acquire<Pending> {
        Acquire::new(self, Target::of(name.into()))
    }

    /// Takes the grant that a callback reported, see [`crate::verify_webhook`], and renews the lock
    /// from then on. The error is [`Error::Lost`] if the lock has passed on meanwhile, or the event
    /// is no grant. Of its options it uses `margin` and `on_release_requested`.
    ///
    /// A callback may come twice. Skip an event whose id you have seen: two claims of one grant
    /// would both count as its holder.
    pub fn claim(&self, event: &Event) -> Acquire<Claimed> {
        let data = &event.data;
        let of = match &data.lock {
            None => Target::set(data.locks.iter().map(|name| Claim::from(&**name)).collect()),
            Some(name) => Target::of(name.clone()),
        };
        let entry =
            data.entry.as_ref().filter(|e| event.kind == "lock.acquired" && !e.token.0.is_empty());
        let mut acquire = Acquire::new(self, of);
        acquire.options.wait = entry.map_or(Duration::ZERO, EventEntry::ttl); // to claim it
        acquire.grant = entry.map(|e| Entry {
            id: e.id.clone(),
            state: "held".into(),
            token: e.token.clone(),
            ttl_seconds: e.ttl_seconds,
            ..Entry::default()
        });
        acquire
    }

    /// Takes over a lock, no set, that another process holds and hands over by [`Held::token`], and
    /// renews it from then on. The other process closes its client, or ends, and does not release
    /// the lock. Of its options it uses `margin` and `on_release_requested`.
    ///
    /// It tries for [`crate::Builder::retry_for`]. The error is [`Error::Lost`] if the lock is not
    /// held any more, or not yet.
    pub fn adopt(&self, name: impl Into<String>, token: impl Into<String>) -> Acquire<Claimed> {
        let mut acquire = Acquire::new(self, Target::of(name.into()));
        acquire.grant = Some(Entry {
            state: "held".into(),
            token: Secret(token.into().trim().to_owned()), // a file ends in a line break
            ttl_seconds: acquire.options.ttl.as_secs_f64(), // until a server says it
            ..Entry::default()
        });
        acquire.options.wait = Duration::ZERO;
        acquire
    }
}

impl Acquire<Pending> {
    /// Has the servers report the grant, or the end of the entry, to this URL, signed with the
    /// tenant's callback secret.
    pub fn callback_url(mut self, url: impl Into<String>) -> Self {
        self.callback = Some(url.into());
        self
    }
}

impl IntoFuture for Acquire<Pending> {
    type Output = Result<Pending, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async {
            let queued = Queued::new(self)?.enter().await?;
            let id = queued.entry.as_ref().map(|entry| entry.id.clone());
            Ok(Pending { id: id.unwrap_or_default(), queued })
        })
    }
}

/// What [`Client::claim`] takes, the grant that a callback reported, and [`Client::adopt`].
#[derive(Debug)]
pub struct Claimed(());

impl IntoFuture for Acquire<Claimed> {
    type Output = Result<Held, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async {
            let Some(grant) = self.grant.take() else {
                return Err(lost(&self.of.name, "not_granted"));
            };
            let mut claimed = Acquisition::new(self)?;
            claimed.stays = true;
            claimed.entry = Some(grant);
            claimed.grant().await
        })
    }
}

/// An entry that the servers keep in its queue without a connection, for as long as its wait. Its
/// grant has to be claimed within a TTL: by [`Pending::wait`], or by [`Client::claim`] where a
/// callback reports it. Otherwise the lock passes to the next in line. Dropping it leaves the entry
/// in the queue.
pub struct Pending {
    id: String,
    queued: Acquisition,
}

impl Pending {
    /// Id of the entry, as callbacks and events have it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the grant and claims it; use [`Client::claim`] where there is a callback. If the
    /// future is dropped, the entry keeps its position, and you can wait again. The error is
    /// [`Error::Lost`] if the grant was not claimed in time.
    pub async fn wait(&mut self) -> Result<Held, Error> {
        self.queued.grant().await
    }

    /// Leaves the queue, or releases a grant that was not claimed. It tries for one TTL.
    pub async fn leave(mut self) -> Result<(), Error> {
        let _counted = Counted::new(&self.queued.client);
        if self.queued.client.is_closed() {
            return Err(Error::Cancelled);
        }
        match self.queued.pursue(Goal::Nothing).await {
            Err(Error::Refused(problem)) if problem.code == "lock_lost" => Ok(()),
            Err(Error::Lost(_)) => Ok(()),
            left => left.map(|_| ()),
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("id", &self.id).finish_non_exhaustive()
    }
}
