use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Reading;
use crate::errors::{no_answer, Error};
use crate::lease::Lease;
use crate::queue::Acquisition;
use crate::types::Entry;

/// A lock, or a set of locks, that this process holds. The client renews it in the background until
/// [`Held::release`], or until it is lost. Put it into an `Arc` to share it.
///
/// The lock counts as lost one margin before its lease can end: the lease counts from when the last
/// successful request was sent. Work that [`Held::run`] runs has stopped by then. A process can stop
/// between any check and a write, so the resource that is written has to compare the fence.
///
/// Dropping it releases the lock in the background, as far as its runtime still runs and a server
/// can be reached; the lease is the limit. Only [`Held::release`] says whether that worked.
#[must_use = "a lock is released when it is dropped"]
pub struct Held {
    pub(crate) lease: Arc<Lease>,
}

impl Held {
    /// Begins to renew a grant whose lease counts from `since`.
    pub(crate) fn begin(of: &Acquisition, entry: Entry, since: Reading) -> Result<Held, Error> {
        Lease::begin(of, entry, since).map(|lease| Held { lease })
    }

    /// Id of the entry, as lists and events have it.
    pub fn id(&self) -> &str {
        &self.lease.entry.id
    }

    /// Name of the lock; the names of a set with commas in between.
    pub fn name(&self) -> &str {
        &self.lease.of.name
    }

    /// Token of the lock: a secret, with which [`crate::Client::adopt`] takes the lock over in
    /// another process.
    pub fn token(&self) -> &str {
        &self.lease.entry.token.0
    }

    /// Fence of the grant, to be compared by the resource that is written: it grows from each grant
    /// of a lock to the next. All locks of a set have the same.
    pub fn fence(&self) -> u64 {
        self.lease.fence()
    }

    /// Fences of a set, by the names of its locks. [`crate::Client::lock_any`] gives the granted ones.
    pub fn fences(&self) -> &BTreeMap<String, u64> {
        &self.lease.fences
    }

    /// The time until the deadline, by which the work has to stop; zero after that. A renewal moves
    /// it. Give it to a step that takes a timeout.
    pub fn left(&self) -> Duration {
        self.lease.left()
    }

    /// Seconds until the lease can end, a margin after the deadline; negative after that.
    #[cfg(feature = "seams")]
    #[doc(hidden)]
    pub fn lease_left(&self) -> f64 {
        self.lease.seconds_left()
    }

    /// Returns while the lock is held, and otherwise an error: [`Error::Lost`] or
    /// [`Error::Released`]. It reads the clocks, so it also knows what the timers are about to learn
    /// after the process or the machine was stopped. It asks no server.
    pub fn check(&self) -> Result<(), Error> {
        match self.lease.rests() {
            true => Err(Error::Released),
            false => self.lease.check(),
        }
    }

    /// Waits until the lock is not held any more, and returns why: what [`Held::check`] says then.
    pub async fn lost(&self) -> Error {
        let mut rests = self.lease.rests.subscribe();
        tokio::select! {
            biased;
            _ = rests.wait_for(|rests| *rests) => Error::Released,
            why = self.lease.lost() => why,
        }
    }

    /// Runs work under the lock, and drops it when the lock is lost. The client checks the deadline
    /// each time before the work goes on. If the lock was lost before the work was done, the error
    /// says why.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Error> {
        tokio::select! {
            biased;
            why = self.lost() => Err(why),
            output = work => self.check().map(|()| output),
        }
    }

    /// Gives the lock back. It tries until the deadline of the lock and no longer, also if its
    /// future is dropped. If it fails, the client logs why, and the lock expires with its TTL. If
    /// the lock was lost before, it sends nothing, and the error is [`Error::Lost`]. A second call
    /// does nothing. With [`crate::Acquire::at_least`] it returns at once, and the lock is released
    /// in the background when that is over.
    pub async fn release(&self) -> Result<(), Error> {
        match self.check() {
            Err(Error::Released) => return Ok(()),
            held => held?,
        }
        match self.lease.release() {
            Some(done) => done.await.unwrap_or(Err(no_answer("the runtime ended"))),
            None => Ok(()), // another task releases it, or it is kept for its least time
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.check().is_ok() {
            self.lease.release();
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("name", &self.name())
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}
