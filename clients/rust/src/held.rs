use std::collections::BTreeMap;
use std::fmt;
use std::future::{pending, poll_fn, Future};
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::acquire::{Options, Target};
use crate::client::{Holding, Shared};
use crate::clock::Reading;
use crate::errors::{lost, Error};
use crate::queue::Acquisition;
use crate::request::{random, repeat, Again, Attempt, Call, Failure, Then, REQUEST_TIMEOUT};
use crate::types::{Entry, ReleaseRequested};

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
    lease: Arc<Lease>,
}

impl Held {
    /// Begins to renew a grant whose lease counts from `since`.
    pub(crate) fn begin(of: &Acquisition, entry: Entry, since: Reading) -> Result<Held, Error> {
        let lease = Arc::new(Lease {
            client: of.client.clone(),
            runtime: of.runtime.clone(),
            of: of.of.clone(),
            options: of.options.clone(),
            trace: of.trace.clone(),
            state: Mutex::new(State {
                since,
                ttl: entry.ttl(),
                asked: ReleaseRequested::default(),
            }),
            fences: entry.locks.iter().map(|lock| (lock.name.clone(), lock.fence)).collect(),
            entry,
            ended: watch::Sender::new(None),
        });
        lease.check()?;
        let holding = lease.client.hold(&lease.runtime);
        lease.runtime.spawn(Keeper { lease: lease.clone(), _holding: holding }.keep());
        Ok(Held { lease })
    }

    /// Id of the entry, as lists and events have it.
    pub fn id(&self) -> &str {
        &self.lease.entry.id
    }

    /// Name of the lock; the names of a set with commas in between.
    pub fn name(&self) -> &str {
        &self.lease.of.name
    }

    /// Fence of the grant, to be compared by the resource that is written: it grows from each grant
    /// of a lock to the next. All locks of a set have the same.
    pub fn fence(&self) -> u64 {
        self.lease.fence()
    }

    /// Fences of a set, by the names of its locks.
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
        let (elapsed, state) = self.lease.elapsed();
        state.ttl.as_secs_f64() - elapsed.as_secs_f64()
    }

    /// Returns while the lock is held, and otherwise an error: [`Error::Lost`] or
    /// [`Error::Released`]. It reads the clocks, so it also knows what the timers are about to learn
    /// after the process or the machine was stopped. It asks no server.
    pub fn check(&self) -> Result<(), Error> {
        self.lease.check()
    }

    /// Waits until the lock is not held any more, and returns why: what [`Held::check`] says then.
    pub async fn lost(&self) -> Error {
        let mut ended = self.lease.ended.subscribe();
        let mut ended = pin!(ended.changed());
        poll_fn(|context| match self.lease.check() {
            Err(why) => Poll::Ready(why),
            Ok(()) => ended.as_mut().poll(context).map(|_| self.lease.why()),
        })
        .await
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
    /// does nothing.
    pub async fn release(&self) -> Result<(), Error> {
        match self.lease.check() {
            Err(Error::Released) => return Ok(()),
            held => held?,
        }
        match self.lease.release() {
            Some(done) => done.await.unwrap_or(Err(Error::NoAnswer("the runtime ended".into()))),
            None => Ok(()), // another task releases it
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

/// What a held lock and the task that renews it share.
struct Lease {
    client: Arc<Shared>,
    runtime: Handle,
    of: Target,
    options: Options,
    trace: String,
    entry: Entry,
    fences: BTreeMap<String, u64>,
    state: Mutex<State>,
    ended: watch::Sender<Option<Error>>, // why it is not held any more
}

#[derive(Clone)]
struct State {
    since: Reading, // when the last successful request was sent
    ttl: Duration,
    asked: ReleaseRequested, // that was reported last
}

impl Lease {
    fn fence(&self) -> u64 {
        self.fences.values().next().copied().unwrap_or(self.entry.fence)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much of the lease is over.
    fn elapsed(&self) -> (Duration, State) {
        let now = self.client.clock.read();
        let state = self.state().clone();
        (now.since(&state.since), state)
    }

    /// The time until the deadline.
    fn left(&self) -> Duration {
        let (elapsed, state) = self.elapsed();
        (state.ttl - self.options.margin(state.ttl)).saturating_sub(elapsed)
    }

    fn why(&self) -> Error {
        self.ended.borrow().clone().unwrap_or(Error::Released)
    }

    /// Ends the lock if its deadline has come or the client is closed, and says why it ended.
    fn check(&self) -> Result<(), Error> {
        if self.ended.borrow().is_some() {
            return Err(self.why());
        }
        let reason = match (self.client.is_closed(), self.left()) {
            (true, _) => "closed",
            (_, Duration::ZERO) => "deadline",
            _ => return Ok(()),
        };
        self.lose(lost(&self.of.name, reason));
        Err(self.why())
    }

    /// Ends the lock for a reason. It reports false if it had ended before.
    fn end(&self, why: Error) -> bool {
        self.ended.send_if_modified(|ended| {
            let ends = ended.is_none();
            if ends {
                *ended = Some(why);
            }
            ends
        })
    }

    fn lose(&self, why: Error) {
        if self.end(why.clone()) {
            log::warn!("fencepost: {why} (fence {})", self.fence());
        }
    }

    /// Releases the lock in the background, and reports how that ends. It does nothing if the lock
    /// has ended.
    fn release(self: &Arc<Self>) -> Option<oneshot::Receiver<Result<(), Error>>> {
        if !self.end(Error::Released) {
            return None;
        }
        let (report, done) = oneshot::channel();
        let lease = self.clone();
        self.client.background(&self.runtime, async move {
            let released = match repeat(&lease.client, &mut Release(&lease)).await {
                Err(Error::Refused(problem)) if problem.code == "lock_lost" => Ok(()),
                released => released,
            };
            if let Err(error) = &released {
                let (name, fence) = (&lease.of.name, lease.fence());
                log::warn!(
                    "fencepost: {name} is not released and expires (fence {fence}): {error}"
                );
            }
            let _ = report.send(released);
        });
        Some(done)
    }

    /// Moves the deadline, unless it has come while the answer was on its way.
    fn renewed(&self, sent: Reading, entry: Entry) {
        if self.check().is_err() {
            return;
        }
        let asked = entry.release_requested.clone().unwrap_or_default();
        let before = {
            let mut state = self.state();
            (state.since, state.ttl) = (sent, entry.ttl());
            std::mem::replace(&mut state.asked, asked.clone())
        };
        let is_new = (&asked.since, &asked.by) != (&before.since, &before.by);
        if let (Some(_), true, Some(call)) =
            (entry.release_requested, is_new, &self.options.on_release_requested)
        {
            let call = call.clone();
            self.runtime.spawn(async move { call(asked) }); // its panic is its own
        }
    }
}

/// Renews a lock until it ends. If its runtime ends before, the lock is lost.
struct Keeper {
    lease: Arc<Lease>,
    _holding: Holding,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.lease.ended.borrow().is_none() {
            self.lease.lose(lost(&self.lease.of.name, "closed"));
        }
    }
}

type Renewing = Pin<Box<dyn Future<Output = Result<(Reading, Entry), Error>> + Send>>;

impl Keeper {
    async fn keep(self) {
        let mut ended = self.lease.ended.subscribe();
        let mut signal = self.lease.client.signal.subscribe();
        let mut renewing: Option<Renewing> = None;
        let mut due = Some(self.renew_after());
        while self.lease.check().is_ok() {
            let (elapsed, left) = (self.lease.elapsed().0, self.lease.left());
            let mut wake = left;
            match due {
                Some(due_after) if due_after <= elapsed => {
                    due = None;
                    let lease = self.lease.clone();
                    renewing =
                        Some(Box::pin(
                            async move { repeat(&lease.client, &mut Renew(&lease)).await },
                        ));
                }
                Some(due_after) => wake = wake.min(due_after - elapsed),
                None => {}
            }
            tokio::select! {
                biased;
                _ = ended.changed() => {}
                _ = signal.changed() => {} // closed, or the machine was suspended
                renewed = finish(&mut renewing) => {
                    renewing = None;
                    match renewed {
                        Ok((sent, entry)) => {
                            self.lease.renewed(sent, entry);
                            due = Some(self.renew_after());
                        }
                        Err(Error::Refused(problem)) if problem.code == "lock_lost" => {
                            self.lease.lose(problem.lost(&self.lease.of.name));
                        }
                        Err(_) => {} // the deadline comes
                    }
                }
                _ = sleep(wake) => {}
            }
        }
    }

    /// How long after the last successful request was sent to renew: a third of the TTL, and up to a
    /// tenth of that sooner or later, so that many locks do not renew at once.
    fn renew_after(&self) -> Duration {
        let third = self.lease.state().ttl / 3;
        third.mul_f64(0.9 + 0.2 * random())
    }
}

async fn finish(renewing: &mut Option<Renewing>) -> Result<(Reading, Entry), Error> {
    match renewing {
        Some(renewing) => renewing.await,
        None => pending().await,
    }
}

struct Renew<'a>(&'a Lease);

impl Attempt for Renew<'_> {
    type Output = (Reading, Entry);
    const HELD: bool = true;

    fn left(&self) -> Duration {
        self.0.left()
    }

    /// Each failure but 410 is one to try again after. A bearer token that is refused now may be
    /// replaced before the deadline.
    async fn attempt(&mut self, base: &str) -> Result<Self::Output, Failure> {
        let sent = self.0.client.clock.read();
        let call = renewal(&self.0.of, &self.0.entry, &self.0.trace);
        match self.0.client.attempt_entry(base, &call).await {
            Ok(entry) => Ok((sent, entry)),
            Err(Failure::Final(error)) if error.code() != "lock_lost" => {
                Err(Failure::Again(Again { error, after: None, then: Then::Elsewhere }))
            }
            Err(failure) => Err(failure),
        }
    }
}

struct Release<'a>(&'a Lease);

impl Attempt for Release<'_> {
    type Output = ();
    const HELD: bool = true;

    fn left(&self) -> Duration {
        self.0.left()
    }

    async fn attempt(&mut self, base: &str) -> Result<(), Failure> {
        let call = release(&self.0.of, &self.0.entry, &self.0.trace);
        self.0.client.attempt(base, &call).await.map(|_| ())
    }
}

pub(crate) fn renewal(of: &Target, entry: &Entry, trace: &str) -> Call {
    Call {
        method: "PUT",
        path: of.held_path(&entry.id) + "/renew",
        token: entry.token.0.clone(),
        trace: trace.into(),
        timeout: REQUEST_TIMEOUT.min(entry.ttl() / 3),
        ..Call::default()
    }
}

pub(crate) fn release(of: &Target, entry: &Entry, trace: &str) -> Call {
    Call {
        method: "DELETE",
        path: of.held_path(&entry.id),
        token: entry.token.0.clone(),
        trace: trace.into(),
        timeout: REQUEST_TIMEOUT,
        ..Call::default()
    }
}
