//! One acquire from its first request to its grant.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::acquire::{Acquire, Options, Target};
use crate::client::{Counted, Shared};
use crate::clock::Reading;
use crate::errors::{lost, no_answer, Error, Problem};
use crate::held::Held;
use crate::lease::{release, renewal};
use crate::request::{repeat, Again, Attempt, Call, Failure, Then, REQUEST_TIMEOUT};
use crate::types::Entry;

/// How long a server keeps a request open that waits.
const MAX_HOLD: Duration = Duration::from_secs(50);
const SECOND: Duration = Duration::from_secs(1);

/// An acquisition, over lost answers, replicas that drain and requests that end before the wait
/// does. If it is dropped before its grant is taken, it takes back in the background what it may
/// have left in the queue.
pub(crate) struct Queued(Option<Acquisition>, #[allow(dead_code)] Counted); // close waits for it

pub(crate) struct Acquisition {
    pub(crate) client: Arc<Shared>,
    pub(crate) runtime: Handle,
    pub(crate) of: Target,
    pub(crate) options: Options,
    pub(crate) trace: String,

    begun: Reading,         // when the call began
    first: Option<Reading>, // when the key was sent first
    key: String,
    pub(crate) entry: Option<Entry>, // once its token is known
    unknown: bool,                   // a request may have written an entry whose token is not known

    /// The servers keep the entry while its client does not ask for it.
    pub(crate) stays: bool,
    callback: Option<String>, // where they report its grant
    goal: Goal,
    since: Reading, // when the client began to pursue the goal
}

/// What attempts are made for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// The lock is held.
    Grant,
    /// The entry is queued.
    Entry,
    /// Nothing is left in the queue.
    Nothing,
}

impl Queued {
    /// An acquisition that has sent nothing. It fails if the client is closed.
    pub(crate) fn new<T>(acquire: Acquire<T>) -> Result<Queued, Error> {
        let acquisition = Acquisition::new(acquire)?;
        let counted = Counted::new(&acquisition.client);
        Ok(Queued(Some(acquisition), counted))
    }

    /// Waits for the grant.
    pub(crate) async fn take(mut self) -> Result<Held, Error> {
        let held = self.acquisition().grant().await?;
        self.0 = None;
        Ok(held)
    }

    /// Waits until the entry is queued.
    pub(crate) async fn enter(mut self) -> Result<Acquisition, Error> {
        let acquisition = self.acquisition();
        acquisition.stays = true;
        acquisition.pursue(Goal::Entry).await?;
        Ok(self.0.take().expect("it is there until it is taken"))
    }

    fn acquisition(&mut self) -> &mut Acquisition {
        self.0.as_mut().expect("it is there until it is taken")
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let Some(mut a) = self.0.take() else { return };
        if a.entry.is_none() && !a.unknown {
            return;
        }
        let (client, runtime) = (a.client.clone(), a.runtime.clone());
        // What it cannot take back expires, one TTL after the last request that waited.
        client.background(&runtime, async move {
            let _ = a.pursue(Goal::Nothing).await;
        });
    }
}

impl Acquisition {
    pub(crate) fn new<T>(acquire: Acquire<T>) -> Result<Acquisition, Error> {
        let client = acquire.client.shared;
        if client.is_closed() {
            return Err(Error::Cancelled);
        }
        let now = client.clock.read();
        Ok(Acquisition {
            runtime: Handle::current(),
            of: acquire.of,
            options: acquire.options,
            trace: client.trace(),
            begun: now,
            first: None,
            key: new_key(),
            entry: None,
            unknown: false,
            stays: false,
            callback: acquire.callback,
            goal: Goal::Grant,
            since: now,
            client,
        })
    }

    /// Waits for the grant, and begins to renew it.
    pub(crate) async fn grant(&mut self) -> Result<Held, Error> {
        let since = self.pursue(Goal::Grant).await?;
        self.first = None; // a grant that is waited for again has to be renewed first
        let entry = self.entry.clone().expect("a grant has an entry");
        Held::begin(self, entry, since)
    }

    pub(crate) async fn pursue(&mut self, goal: Goal) -> Result<Reading, Error> {
        self.goal = goal;
        self.since = self.client.clock.read();
        repeat(&self.client.clone(), self).await
    }

    fn is_held(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.state == "held")
    }

    /// How much of the wait is left.
    fn waits(&self) -> Duration {
        self.options.wait.saturating_sub(self.client.since(&self.begun))
    }

    fn ttl(&self) -> Duration {
        self.entry.as_ref().map_or(self.options.ttl, Entry::ttl)
    }

    /// Makes one attempt to acquire, or to go on waiting. After a success the entry holds, or the
    /// goal does not need that.
    async fn next(&mut self, base: &str) -> Result<(), Failure> {
        let sent = self.client.clock.read();
        self.first.get_or_insert(sent);
        let call = self.call();
        self.send(base, call).await?;
        if self.goal != Goal::Grant || self.is_held() {
            return Ok(());
        }
        // One that is answered too soon would be sent in a loop.
        let then = if self.client.since(&sent) < SECOND { Then::Here } else { Then::Now };
        let error = no_answer("the lock was not granted");
        Err(Failure::Again(Again { error, after: None, then }))
    }

    /// The request that is due: an acquire until the token is known, then one that waits on.
    fn call(&self) -> Call {
        let hold = self.waits().min(MAX_HOLD);
        if let Some(entry) = &self.entry {
            let seconds = whole_seconds(hold.max(SECOND));
            return Call {
                method: "GET",
                path: format!(
                    "{}?wait_seconds={}",
                    self.of.entry_path(&entry.id),
                    seconds.as_secs()
                ),
                token: entry.token.0.clone(),
                trace: self.trace.clone(),
                timeout: seconds + REQUEST_TIMEOUT,
                ..Call::default()
            };
        }
        // The token is needed, not the grant.
        let leaves = self.goal == Goal::Nothing;
        Call {
            method: "POST",
            path: self.of.path(),
            key: self.key.clone(),
            prefer: if leaves { "wait=0".into() } else { String::new() },
            trace: self.trace.clone(),
            body: self.options.body(&self.of, self.callback.as_deref(), self.stays),
            timeout: REQUEST_TIMEOUT + if self.stays || leaves { Duration::ZERO } else { hold },
            ..Call::default()
        }
    }

    /// Sends a request about the entry, and takes from its answer what that says of the entry.
    async fn send(&mut self, base: &str, call: Call) -> Result<(), Failure> {
        let before = self.unknown;
        // The future may be dropped before the answer is there.
        self.unknown = self.entry.is_none();
        match self.client.attempt_entry(base, &call).await {
            Ok(entry) => {
                self.entry = Some(entry);
                self.unknown = false;
                Ok(())
            }
            Err(Failure::Final(Error::Refused(problem))) => {
                self.unknown = before;
                Err(self.refused(problem))
            }
            Err(failure) => {
                if let Failure::Again(Again { error: Error::Refused(problem), .. }) = &failure {
                    self.learn(problem, before);
                }
                Err(failure)
            }
        }
    }

    /// Takes the entry from the answer of a replica that hands it over. Where there is none, the
    /// request may have written one all the same.
    fn learn(&mut self, problem: &Problem, before: bool) {
        if problem.status == 429 || problem.may_have_taken_effect == Some(false) {
            self.unknown = before;
        }
        for entry in [&problem.entry, &problem.set].into_iter().flatten() {
            if !entry.token.0.is_empty() {
                // Its grant has to be asked for.
                self.entry = Some(Entry { state: String::new(), ..entry.clone() });
                self.unknown = false;
            }
        }
    }

    /// What a refusal means for the call.
    fn refused(&mut self, problem: Box<Problem>) -> Failure {
        if let 409 | 410 | 423 = problem.status {
            // Nothing is left in the queue.
            self.unknown = false;
            if !self.stays {
                self.entry = None;
            } // of an async entry the servers are asked again
        }
        if problem.code == "lock_lost" {
            return self.ended(problem);
        }
        Failure::Final(Error::Refused(problem))
    }

    /// What the end of the entry means for the call. One that expired because no request reached a
    /// server in time is acquired with a new key, while the call may still wait.
    fn ended(&mut self, mut problem: Box<Problem>) -> Failure {
        let lost = problem.lost(&self.of.name);
        match problem.reason.as_deref().unwrap_or_default() {
            "wait_timeout" | "deadlock" | "superseded" | "mode_mismatch" => {
                problem.code = problem.reason.clone().unwrap_or_default();
                return Failure::Final(Error::Refused(problem));
            }
            "expired" | "unknown" | "" => {}
            _ => return Failure::Final(lost),
        }
        let tries = self.options.wait.is_zero();
        if self.stays || self.goal == Goal::Nothing || !tries && self.waits().is_zero() {
            return Failure::Final(lost);
        }
        if !tries {
            self.options.wait = whole_seconds(self.waits());
            self.begun = self.client.clock.read();
        }
        (self.key, self.first) = (new_key(), None);
        Failure::Again(Again { error: lost, after: None, then: Then::Here })
    }
}

impl Attempt for Acquisition {
    /// When the request was sent from which the lease counts.
    type Output = Reading;

    fn left(&self) -> Duration {
        match self.goal {
            Goal::Grant => self
                .options
                .wait
                .saturating_add(self.client.retry_for)
                .saturating_sub(self.client.since(&self.begun)),
            Goal::Entry => self.client.retry_for.saturating_sub(self.client.since(&self.since)),
            Goal::Nothing => self.ttl().saturating_sub(self.client.since(&self.since)),
        }
    }

    fn outlives(&self) -> bool {
        self.goal == Goal::Nothing
    }

    /// Makes one request, and a second one where a grant may be old, which is renewed before it
    /// counts, or where the token is needed to leave the queue: the same key is the same entry.
    async fn attempt(&mut self, base: &str) -> Result<Reading, Failure> {
        let due = match self.goal {
            Goal::Grant => !self.is_held(),
            Goal::Entry => true,
            Goal::Nothing => self.entry.is_none(),
        };
        if due {
            self.next(base).await?;
        }
        let sent = self.client.clock.read();
        match (self.goal, &self.entry) {
            (Goal::Nothing, Some(entry)) => {
                let call = release(&self.of, entry, &self.trace);
                self.client.attempt(base, &call).await?;
            }
            (Goal::Grant, Some(entry)) => match self.first {
                Some(first) if sent.since(&first) <= self.ttl() / 3 => return Ok(first),
                _ => {
                    let call = renewal(&self.of, entry, entry.ttl(), &self.trace);
                    self.send(base, call).await?;
                    if !self.is_held() {
                        return Err(Failure::Final(lost(&self.of.name, "not_granted")));
                    }
                }
            },
            _ => {}
        }
        Ok(sent)
    }
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

/// A key with 128 random bits.
fn new_key() -> String {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).expect("the system has random numbers");
    format!("{:032x}", u128::from_ne_bytes(bits))
}
