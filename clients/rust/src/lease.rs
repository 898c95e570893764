//! The lease of a held lock, and the task that renews it.

use std::collections::BTreeMap;
use std::future::{pending, poll_fn, Future};
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::acquire::{Options, Target};
use crate::client::{Holding, Shared};
use crate::clock::Reading;
use crate::errors::{lost, Error};
use crate::queue::Acquisition;
use crate::request::{random, repeat, Again, Attempt, Call, Failure, Then, REQUEST_TIMEOUT};
use crate::types::{Entry, ReleaseRequested};

/// What a held lock and the task that renews it share.
pub(crate) struct Lease {
    client: Arc<Shared>,
    runtime: Handle,
    pub(crate) of: Target,
    options: Options,
    trace: String,
    pub(crate) entry: Entry,
    pub(crate) fences: BTreeMap<String, u64>,
    state: Mutex<State>,
    pub(crate) ended: watch::Sender<Option<Error>>, // why it is not held any more
    granted: Reading,
    pub(crate) rests: watch::Sender<bool>, // the work is over, and the lock is kept for its least time
}

struct State {
    since: Reading, // when the last successful request was sent
    ttl: Duration,
    asked: ReleaseRequested, // that was reported last
    failed: Option<Error>,   // the last attempt to renew, if it failed
}

impl Lease {
    /// Begins to renew a grant whose lease counts from `since`.
    pub(crate) fn begin(
        of: &Acquisition,
        entry: Entry,
        since: Reading,
    ) -> Result<Arc<Lease>, Error> {
        let fences = entry.locks.iter().map(|lock| (lock.name.clone(), lock.fence)).collect();
        let lease = Arc::new(Lease {
            client: of.client.clone(),
            runtime: of.runtime.clone(),
            of: of.of.clone().kept(&fences),
            options: of.options.clone(),
            trace: of.trace.clone(),
            state: Mutex::new(State {
                since,
                ttl: entry.ttl(),
                asked: ReleaseRequested::default(),
                failed: None,
            }),
            fences,
            entry,
            ended: watch::Sender::new(None),
            granted: of.client.clock.read(),
            rests: watch::Sender::new(false),
        });
        lease.check()?;
        let holding = lease.client.hold(&lease.runtime);
        lease.runtime.spawn(Keeper { lease: lease.clone(), _holding: holding }.keep());
        Ok(lease)
    }

    pub(crate) fn fence(&self) -> u64 {
        self.fences.values().next().copied().unwrap_or(self.entry.fence)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much of the lease is over, and its TTL.
    fn elapsed(&self) -> (Duration, Duration) {
        let now = self.client.clock.read();
        let state = self.state();
        (now.since(&state.since), state.ttl)
    }

    /// The time until the deadline.
    pub(crate) fn left(&self) -> Duration {
        let (elapsed, ttl) = self.elapsed();
        (ttl - self.options.margin(ttl)).saturating_sub(elapsed)
    }

    /// Seconds until the end of the lease; negative after that.
    #[cfg(feature = "seams")]
    pub(crate) fn seconds_left(&self) -> f64 {
        let (elapsed, ttl) = self.elapsed();
        ttl.as_secs_f64() - elapsed.as_secs_f64()
    }

    pub(crate) fn why(&self) -> Error {
        self.ended.borrow().clone().unwrap_or(Error::Released)
    }

    /// Ends the lock if its deadline has come or the client is closed, and says why it ended.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.ended.borrow().is_some() {
            return Err(self.why());
        }
        match (self.client.is_closed(), self.left()) {
            (true, _) => self.lose(lost(&self.of.name, "closed")),
            (_, Duration::ZERO) => self.lose(self.overdue()),
            _ => return Ok(()),
        }
        Err(self.why())
    }

    /// The loss at the deadline, with what the renewals met.
    fn overdue(&self) -> Error {
        let mut error = lost(&self.of.name, "deadline");
        if let Error::Lost(lost) = &mut error {
            lost.unrenewed = Some(self.elapsed().0);
            lost.cause = self.state().failed.clone();
        }
        error
    }

    /// Waits until the lock is not held any more, and returns why.
    pub(crate) async fn lost(&self) -> Error {
        let mut ended = self.ended.subscribe();
        let mut ended = pin!(ended.changed());
        poll_fn(|context| match self.check() {
            Err(why) => Poll::Ready(why),
            Ok(()) => ended.as_mut().poll(context).map(|_| self.why()),
        })
        .await
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
        if self.end(why.clone()) && !self.rests() {
            log::warn!("fencepost: {why} (fence {})", self.fence());
        }
    }

    pub(crate) fn rests(&self) -> bool {
        *self.rests.borrow()
    }

    /// Releases the lock in the background, and reports how that ends. It does nothing if the lock
    /// has ended. What is left of its least time is over first: the lock is renewed until then.
    pub(crate) fn release(self: &Arc<Self>) -> Option<oneshot::Receiver<Result<(), Error>>> {
        let kept = self.client.clock.read().monotonic.saturating_sub(self.granted.monotonic);
        let left = self.options.at_least.saturating_sub(kept);
        if left.is_zero() {
            return self.release_now();
        }
        if !self.rests.send_replace(true) {
            let lease = self.clone();
            self.runtime.spawn(async move {
                if timeout(left, lease.lost()).await.is_err() {
                    lease.release_now();
                }
            });
        }
        None
    }

    fn release_now(self: &Arc<Self>) -> Option<oneshot::Receiver<Result<(), Error>>> {
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
            (state.since, state.ttl, state.failed) = (sent, entry.ttl(), None);
            std::mem::replace(&mut state.asked, asked.clone())
        };
        let is_new = (&asked.since, &asked.by) != (&before.since, &before.by);
        if let (Some(_), true, Some(call)) =
            (entry.release_requested, is_new && !self.rests(), &self.options.on_release_requested)
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
            let mut wake = self.lease.left();
            if let Some(after) = due {
                let wait = after.saturating_sub(self.lease.elapsed().0);
                if wait.is_zero() {
                    due = None;
                    renewing = Some(renew(self.lease.clone()));
                } else {
                    wake = wake.min(wait);
                }
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

fn renew(lease: Arc<Lease>) -> Renewing {
    Box::pin(async move { repeat(&lease.client, &mut Renew(&lease)).await })
}

/// Waits for the end of the renewal that is under way.
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
        let call = renewal(&self.0.of, &self.0.entry, self.0.elapsed().1, &self.0.trace);
        let failure = match self.0.client.attempt_entry(base, &call).await {
            Ok(entry) => return Ok((sent, entry)),
            Err(Failure::Final(error)) if error.code() != "lock_lost" => {
                Failure::Again(Again { error, after: None, then: Then::Elsewhere })
            }
            Err(failure) => failure.at(base),
        };
        if let Failure::Again(again) = &failure {
            self.0.state().failed = Some(again.error.clone());
        }
        Err(failure)
    }
}

struct Release<'a>(&'a Lease);

impl Attempt for Release<'_> {
    type Output = ();
    const HELD: bool = true;

    fn left(&self) -> Duration {
        self.0.left()
    }

    fn outlives(&self) -> bool {
        true
    }

    async fn attempt(&mut self, base: &str) -> Result<(), Failure> {
        let call = release(&self.0.of, &self.0.entry, &self.0.trace);
        self.0.client.attempt(base, &call).await.map(|_| ())
    }
}

pub(crate) fn renewal(of: &Target, entry: &Entry, ttl: Duration, trace: &str) -> Call {
    Call {
        method: "PUT",
        path: of.held_path(&entry.id) + "/renew",
        token: entry.token.0.clone(),
        trace: trace.into(),
        timeout: REQUEST_TIMEOUT.min(ttl / 3),
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
