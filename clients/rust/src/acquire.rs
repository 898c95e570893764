use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::client::Client;
use crate::held::Held;
use crate::queue::Queued;
use crate::request::escape;
use crate::types::{Claim, Entry, Mode, ReleaseRequested};
use crate::Error;

const LEAST_MARGIN: Duration = Duration::from_millis(250);

impl Client {
    /// Acquires a lock: an exclusive one with a TTL of 30 s, for which the call waits up to a minute,
    /// unless set otherwise. Await what it returns to get a [`Held`] lock.
    ///
    /// If the future is dropped while it waits, the request leaves the queue in the background; if
    /// that reaches no server, its entry expires with the TTL. The error is [`Error::Lost`] if an
    /// operator revoked the entry. Codes of others: `wait_timeout`, `lock_closed`, `deadlock`,
    /// `superseded`, `mode_mismatch`, and `no_answer` after the wait and [`crate::Builder::retry_for`].
    pub fn lock(&self, name: impl Into<String>) -> Acquire {
        Acquire::new(self, Target::of(name.into()))
    }

    /// Acquires a lock if it is free now. If not, the error has the code `lock_held`.
    pub fn try_lock(&self, name: impl Into<String>) -> Acquire {
        self.lock(name).wait(Duration::ZERO)
    }

    /// Acquires all locks at once, or none. Their order does not matter. It fails as
    /// [`Client::lock`] does.
    pub fn lock_set<C: Into<Claim>>(&self, claims: impl IntoIterator<Item = C>) -> Acquire {
        Acquire::new(self, Target::set(claims.into_iter().map(Into::into).collect()))
    }

    /// Acquires all locks if they are free now. If not, the error has the code `lock_held`.
    pub fn try_lock_set<C: Into<Claim>>(&self, claims: impl IntoIterator<Item = C>) -> Acquire {
        self.lock_set(claims).wait(Duration::ZERO)
    }

    /// Acquires any `k` of the locks: those that are free first, and of these the first in order. It
    /// waits in all their queues, and fails as [`Client::lock`] does. [`Held::fences`] has those
    /// that were granted.
    pub fn lock_any<C: Into<Claim>>(
        &self,
        claims: impl IntoIterator<Item = C>,
        k: usize,
    ) -> Acquire {
        let mut acquire = self.lock_set(claims);
        acquire.of.k = Some(k);
        acquire
    }

    /// Acquires any `k` of the locks that are free now. If fewer are, the error has the code
    /// `lock_held`.
    pub fn try_lock_any<C: Into<Claim>>(
        &self,
        claims: impl IntoIterator<Item = C>,
        k: usize,
    ) -> Acquire {
        self.lock_any(claims, k).wait(Duration::ZERO)
    }
}

/// An acquire with its options. It begins when it is awaited.
#[must_use = "an acquire begins when it is awaited"]
pub struct Acquire<T = Held> {
    pub(crate) client: Client,
    pub(crate) of: Target,
    pub(crate) options: Options,
    pub(crate) callback: Option<String>,
    pub(crate) grant: Option<Entry>, // that is claimed
    gives: PhantomData<fn() -> T>,
}

impl<T> Acquire<T> {
    pub(crate) fn new(client: &Client, of: Target) -> Self {
        let client = client.clone();
        let options = Options::default();
        Acquire { client, of, options, callback: None, grant: None, gives: PhantomData }
    }

    /// Sets the lease: how long a dead holder blocks the lock. 30 s by default, 2 s at least.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// Sets how long to queue at most; a minute by default. A try does not queue.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.options.wait = wait;
        self
    }

    /// Readers share the lock; writers have it alone. A set has modes of its own.
    pub fn shared(mut self) -> Self {
        self.options.mode = Mode::shared();
        self
    }

    /// Takes one of `limit` permits. Each entry is judged by its own limit. A set has modes of its
    /// own.
    pub fn semaphore(mut self, limit: u32) -> Self {
        self.options.mode = self.options.mode.semaphore(limit);
        self
    }

    /// Of a semaphore: takes so many permits instead of one.
    pub fn permits(mut self, permits: u32) -> Self {
        self.options.mode.permits = Some(permits);
        self
    }

    /// Gives up the wait for a later one that has this option, too. The error has the code
    /// `superseded`.
    pub fn only_newest(mut self) -> Self {
        self.options.only_newest = true;
        self
    }

    /// Names this worker, for people; the bearer token's `sub` by default. The server detects
    /// deadlocks among holders with a name.
    pub fn holder(mut self, holder: impl Into<String>) -> Self {
        self.options.holder = Some(holder.into());
        self
    }

    /// Adds what is shown with the lock: up to 16 pairs, 2 KiB in all.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.metadata.insert(key.into(), value.into());
        self
    }

    /// Asks the holder to finish within this time, if the call has to wait.
    pub fn request_release(mut self, within: Duration) -> Self {
        self.options.request_release = Some(within);
        self
    }

    /// Sets how long before the end of the lease the work has to stop: a tenth of the TTL by
    /// default, and at least 250 ms. It covers the time from a check to the effect of a write, and
    /// clocks that differ in speed.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.options.margin = Some(margin);
        self
    }

    /// Keeps the lock, and renews it, until this long after the grant, although the work has ended.
    /// Its release returns at once. A client that is closed, or a runtime that ends, leaves the rest
    /// to the TTL: one as long covers that.
    pub fn at_least(mut self, time: Duration) -> Self {
        self.options.at_least = time;
        self
    }

    /// Sets what is called, while the lock is held, when a waiter asks the holder to finish; once
    /// for each that is the first to ask. Nothing is taken away. It is called in a task of its own.
    pub fn on_release_requested<F>(mut self, call: F) -> Self
    where
        F: Fn(ReleaseRequested) + Send + Sync + 'static,
    {
        self.options.on_release_requested = Some(Arc::new(call));
        self
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Held, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { Queued::new(self)?.take().await })
    }
}

impl<T> fmt::Debug for Acquire<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("name", &self.of.name).finish_non_exhaustive()
    }
}

impl<T> Clone for Acquire<T> {
    fn clone(&self) -> Self {
        Acquire {
            options: self.options.clone(),
            callback: self.callback.clone(),
            grant: self.grant.clone(),
            ..Acquire::new(&self.client, self.of.clone())
        }
    }
}

/// How to acquire.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) ttl: Duration,
    pub(crate) wait: Duration,
    mode: Mode,
    only_newest: bool,
    holder: Option<String>,
    metadata: HashMap<String, String>,
    request_release: Option<Duration>,
    margin: Option<Duration>,
    pub(crate) at_least: Duration,
    pub(crate) on_release_requested: Option<Arc<dyn Fn(ReleaseRequested) + Send + Sync>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ttl: Duration::from_secs(30),
            wait: Duration::from_secs(60),
            mode: Mode::default(),
            only_newest: false,
            holder: None,
            metadata: HashMap::new(),
            request_release: None,
            margin: None,
            at_least: Duration::ZERO,
            on_release_requested: None,
        }
    }
}

impl Options {
    /// The margin of a lease. It is at most half of it, so that a renewal fits before the deadline.
    pub(crate) fn margin(&self, ttl: Duration) -> Duration {
        self.margin.unwrap_or(LEAST_MARGIN.max(ttl / 10)).min(ttl / 2)
    }

    /// What an acquire sends.
    pub(crate) fn body(
        &self,
        of: &Target,
        callback: Option<&str>,
        asynchronous: bool,
    ) -> Option<Vec<u8>> {
        let wish = self.request_release.filter(|_| !self.wait.is_zero());
        let body = Body {
            locks: of.claims.as_deref(),
            any: of.k,
            mode: of.claims.is_none().then_some(self.mode),
            ttl_seconds: self.ttl.as_secs_f64(),
            wait_seconds: Some(self.wait.as_secs_f64()).filter(|wait| *wait > 0.0),
            only_newest: self.only_newest.then_some(true),
            asynchronous: asynchronous.then_some(true),
            callback_url: callback,
            request_release: wish.map(|within| Wish { within_seconds: within.as_secs_f64() }),
            holder: self.holder.as_deref(),
            metadata: Some(&self.metadata).filter(|metadata| !metadata.is_empty()),
        };
        Some(serde_json::to_vec(&body).expect("texts and numbers are JSON"))
    }
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    locks: Option<&'a [Claim]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    any: Option<usize>,
    #[serde(flatten)]
    mode: Option<Mode>,
    ttl_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    only_newest: Option<bool>,
    #[serde(rename = "async", skip_serializing_if = "Option::is_none")]
    asynchronous: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_release: Option<Wish>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a HashMap<String, String>>,
}

#[derive(Serialize)]
struct Wish {
    within_seconds: f64,
}

/// What is acquired: a lock, or a set if it has claims.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) name: String, // of a set, all names
    claims: Option<Vec<Claim>>,
    k: Option<usize>, // how many of the claims suffice; None is all
}

impl Target {
    pub(crate) fn of(name: String) -> Self {
        Target { name, claims: None, k: None }
    }

    pub(crate) fn set(claims: Vec<Claim>) -> Self {
        let mut names: Vec<&str> = claims.iter().map(|claim| &*claim.name).collect();
        names.sort_unstable();
        Target { name: names.join(","), claims: Some(claims), k: None }
    }

    /// What is held after a grant with these fences.
    pub(crate) fn kept(mut self, fences: &BTreeMap<String, u64>) -> Self {
        if self.k.is_some() {
            self.name = fences.keys().cloned().collect::<Vec<_>>().join(",");
        }
        self
    }

    /// Where the lock or set is acquired.
    pub(crate) fn path(&self) -> String {
        match self.claims {
            Some(_) => "/locksets".into(),
            None => format!("/locks/{}", escape(&self.name)),
        }
    }

    /// Where the entry is waited for.
    pub(crate) fn entry_path(&self, id: &str) -> String {
        match self.claims {
            Some(_) => self.held_path(id),
            None => format!("{}/entries/{}", self.path(), escape(id)),
        }
    }

    /// Where the entry is released, and with `/renew` renewed.
    pub(crate) fn held_path(&self, id: &str) -> String {
        match self.claims {
            Some(_) => format!("/locksets/{}", escape(id)),
            None => self.path(),
        }
    }
}
