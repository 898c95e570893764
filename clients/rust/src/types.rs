//! What servers say, as far as programs use it.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A lock with its holders and waiters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Lock {
    /// Name of the lock.
    pub name: String,
    /// Holders, the longest holding first.
    pub holders: Vec<Holder>,
    /// Waiters in order.
    pub waiters: Vec<Waiter>,
    /// How many wait in all.
    pub waiting: u64,
    /// The newest fence that the replica knows.
    pub fence: u64,
    /// Further fields, such as `figures`.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A lock in a list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LockSummary {
    /// Name of the lock.
    pub name: String,
    /// `held`, or `contended` if an entry waits.
    pub state: String,
    /// Holders, without metadata.
    pub holders: Vec<Holder>,
    /// How many wait.
    pub waiting: u64,
    /// The newest fence that the replica knows.
    pub fence: u64,
}

/// An entry that holds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Holder {
    /// The worker that asked.
    pub holder: String,
    /// Since when it holds, by RFC 3339.
    pub since: String,
    /// When its lease ends unless it is renewed, if the server knows.
    pub expires_at: Option<String>,
    /// Fence of the grant.
    pub fence: u64,
    /// Mode in which it holds.
    pub mode: String,
    /// Limit of a semaphore.
    pub limit: Option<u32>,
    /// Permits of a semaphore.
    pub permits: Option<u32>,
    /// Metadata of the entry.
    pub metadata: HashMap<String, String>,
}

/// An entry that waits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Waiter {
    /// Position in the queue; 1 is next.
    pub position: u64,
    /// The worker that asked.
    pub holder: String,
    /// Mode that it asked for.
    pub mode: String,
    /// Limit of a semaphore.
    pub limit: Option<u32>,
    /// Permits of a semaphore.
    pub permits: Option<u32>,
    /// When it joined the queue, by RFC 3339.
    pub enqueued_at: String,
    /// How many seconds ago that was.
    pub waited_seconds: f64,
    /// Metadata of the entry.
    pub metadata: HashMap<String, String>,
}

/// Says that a waiter asks the holder to finish.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ReleaseRequested {
    /// When the first of them asked, by RFC 3339.
    pub since: String,
    /// The worker that asked first.
    pub by: String,
    /// How many ask.
    pub waiting: u64,
    /// The earliest time by which one of them hopes for the lock, by RFC 3339.
    pub wished_at: Option<String>,
}

/// What happened to a lock.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Event {
    /// Id of the event, which resumes a stream.
    pub id: String,
    /// Type, such as `lock.acquired`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When the server saw it, by RFC 3339.
    pub timestamp: String,
    /// What it is about.
    pub data: EventData,
}

/// What an event is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EventData {
    /// Number of the write that caused the event.
    pub number: u64,
    /// Tenant whose lock it is.
    pub tenant: String,
    /// The lock, unless it is a set.
    pub lock: Option<String>,
    /// Locks of a set.
    pub locks: Vec<String>,
    /// The entry to which it happened.
    pub entry: Option<EventEntry>,
    /// Why the entry ended.
    pub reason: Option<String>,
    /// Further fields, such as `waited_seconds`.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// The entry of an event. Only the callback of a grant has its token, which [`crate::Client::claim`]
/// uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EventEntry {
    /// Id of the entry.
    pub id: String,
    /// The worker that asked.
    pub holder: String,
    /// Fence of the grant, if there is one.
    pub fence: Option<u64>,
    /// The lease in seconds.
    pub ttl_seconds: f64,
    /// Metadata of the entry.
    pub metadata: HashMap<String, String>,
    pub(crate) token: Secret,
}

impl EventEntry {
    pub(crate) fn ttl(&self) -> Duration {
        Duration::try_from_secs_f64(self.ttl_seconds).unwrap_or_default()
    }
}

/// One lock of a set: `Claim::from("accounts:1")`, and in another mode
/// `Claim::from("accounts:2").shared()`.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Claim {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) mode: Mode,
}

impl<T: Into<String>> From<T> for Claim {
    fn from(name: T) -> Self {
        Claim { name: name.into(), mode: Mode::default() }
    }
}

impl Claim {
    /// Readers share the lock; writers have it alone.
    pub fn shared(mut self) -> Self {
        self.mode = Mode::shared();
        self
    }

    /// Takes one of `limit` permits. Each entry is judged by its own limit.
    pub fn semaphore(mut self, limit: u32) -> Self {
        self.mode = self.mode.semaphore(limit);
        self
    }

    /// Of a semaphore: takes so many permits instead of one.
    pub fn permits(mut self, permits: u32) -> Self {
        self.mode.permits = Some(permits);
        self
    }
}

/// How a lock is shared; exclusive if nothing is set.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Mode {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permits: Option<u32>,
}

impl Mode {
    pub(crate) fn shared() -> Self {
        Mode { mode: Some("shared"), ..Mode::default() }
    }

    pub(crate) fn semaphore(self, limit: u32) -> Self {
        Mode { mode: Some("semaphore"), limit: Some(limit), ..self }
    }
}

/// What a server says of an entry, of one lock or of a set, that waits or holds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) token: Secret,
    pub(crate) ttl_seconds: f64,
    pub(crate) fence: u64,
    pub(crate) locks: Vec<FenceOf>,
    pub(crate) release_requested: Option<ReleaseRequested>,
}

impl Entry {
    /// The lease.
    pub(crate) fn ttl(&self) -> Duration {
        Duration::try_from_secs_f64(self.ttl_seconds).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FenceOf {
    pub(crate) name: String,
    pub(crate) fence: u64,
}

/// A text that no output shows.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
