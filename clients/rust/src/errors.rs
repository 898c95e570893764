use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::types::{Entry, Holder};

/// Why a call failed. [`Error::code`] names it for programs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A server, or a proxy in front of it, refused.
    Refused(Box<Problem>),
    /// The lock is not held any more, or an entry in a queue is gone.
    Lost(Box<Lost>),
    /// No server answered in time. What was asked may have taken effect.
    NoAnswer(NoAnswer),
    /// The client was closed before the call, or during it.
    Cancelled,
    /// The lock was released by this process.
    Released,
    /// A webhook is not signed with a secret of the receiver, or is not of now.
    BadWebhook(String),
    /// The client cannot be built from what it was given.
    Config(String),
}

/// The last failure of a call that no server answered. It is the source of the error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NoAnswer {
    /// Base URL of the last attempt, if there was one.
    pub url: Option<String>,
    pub(crate) cause: Arc<dyn StdError + Send + Sync>,
}

/// The problem that a server answered, by RFC 9457; or one of this crate, without a status, for a
/// request that it refuses to send.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Problem {
    /// What went wrong, for programs; empty if a proxy answered.
    pub code: String,
    /// What the code means, always in the same words.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What is wrong with this request, for people.
    pub detail: Option<String>,
    /// Finds the request in the server's log.
    pub request_id: Option<String>,
    /// Why the entry is gone, or the lock is closed.
    pub reason: Option<String>,
    /// What the operator said who revoked the entry.
    pub revoke_reason: Option<String>,
    /// Holders of the lock.
    pub holders: Vec<Holder>,
    /// Whether the request may have been carried out all the same, if the server knows.
    pub may_have_taken_effect: Option<bool>,
    /// When the server expects that a retry succeeds.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
    /// Further fields, such as `cycle` of a deadlock.
    #[serde(flatten)]
    pub fields: Map<String, Value>,

    // What a replica hands over that shuts down.
    pub(crate) entry: Option<Entry>,
    pub(crate) set: Option<Entry>,
}

/// Why a lock is lost. Work under the lock has to stop. To go on, acquire again: the fence is then
/// greater.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Lost {
    /// Name of the lock, or the names of a set with commas in between.
    pub name: String,
    /// What the server says, such as `expired` or `revoked`. Reasons of this crate are `deadline`:
    /// no renewal succeeded in time; `closed`: the client was closed, or its runtime ended;
    /// `not_granted`: an event is no grant.
    pub reason: String,
    /// What the operator said who revoked it, if the server knows.
    pub revoke_reason: Option<String>,
    /// Finds the answer in the server's log, if the server ended the lock.
    pub request_id: Option<String>,
    /// For how long no renewal has succeeded, if the reason is `deadline`.
    pub unrenewed: Option<Duration>,
    /// The last error of a renewal, which is the source of this one.
    pub cause: Option<Error>,
}

impl Error {
    /// The code of the server's problem, or one of this crate: `lock_lost`, `no_answer`,
    /// `cancelled`, `released`, `bad_webhook`, `config`.
    pub fn code(&self) -> &str {
        match self {
            Error::Refused(problem) => &problem.code,
            Error::Lost(_) => "lock_lost",
            Error::NoAnswer(_) => "no_answer",
            Error::Cancelled => "cancelled",
            Error::Released => "released",
            Error::BadWebhook(_) => "bad_webhook",
            Error::Config(_) => "config",
        }
    }

    /// The problem that a server answered.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Error::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// Why the lock is lost, if it is.
    pub fn lost(&self) -> Option<&Lost> {
        match self {
            Error::Lost(lost) => Some(lost),
            _ => None,
        }
    }

    /// Whether the lock, or the entry in the queue, is lost.
    pub fn is_lost(&self) -> bool {
        self.lost().is_some()
    }

    /// Whether another holder has the lock: the answer to a try.
    pub fn is_held(&self) -> bool {
        self.code() == "lock_held"
    }

    /// Whether the lock was not granted within the wait.
    pub fn is_wait_timeout(&self) -> bool {
        self.code() == "wait_timeout"
    }

    /// Whether a later call with [`crate::Acquire::only_newest`] took its place in the queue.
    pub fn is_superseded(&self) -> bool {
        self.code() == "superseded"
    }

    /// Whether no server answered in time.
    pub fn is_no_answer(&self) -> bool {
        matches!(self, Error::NoAnswer(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(problem) => problem.fmt(f),
            Error::Lost(lost) => lost.fmt(f),
            Error::NoAnswer(last) => {
                let url = last.url.as_ref().map_or(String::new(), |url| format!("{url}: "));
                write!(f, "no server answered in time: {url}{} (no_answer)", last.causes())
            }
            Error::Cancelled => write!(f, "the client is closed (cancelled)"),
            Error::Released => write!(f, "the lock is released"),
            Error::BadWebhook(cause) => {
                write!(f, "the delivery is not valid: {cause} (bad_webhook)")
            }
            Error::Config(cause) => f.write_str(cause),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::NoAnswer(last) => Some(&*last.cause),
            Error::Lost(lost) => lost.cause.as_ref().map(|cause| cause as _),
            _ => None,
        }
    }
}

impl NoAnswer {
    /// The cause, with its own causes.
    pub(crate) fn causes(&self) -> String {
        let mut text = self.cause.to_string();
        let mut cause = self.cause.source();
        while let Some(e) = cause {
            text += &format!(": {e}");
            cause = e.source();
        }
        text
    }
}

/// No answer, for a reason.
pub(crate) fn no_answer(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::NoAnswer(NoAnswer { url: None, cause: Arc::from(cause.into()) })
}

/// A request that is not sent.
pub(crate) fn unsent(code: &str, title: impl Into<String>) -> Error {
    let (code, title) = (code.into(), title.into());
    Error::Refused(Box::new(Problem { code, title, ..Problem::default() }))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)?;
        if let Some(detail) = &self.detail {
            write!(f, ": {detail}")?;
        }
        match (&*self.code, &self.request_id) {
            ("", _) => Ok(()),
            (code, None) => write!(f, " ({code})"),
            (code, Some(id)) => write!(f, " ({code}, request {id})"),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is lost: {}", self.name, self.reason)?;
        if let Some(reason) = &self.revoke_reason {
            write!(f, ": {reason}")?;
        }
        if let Some(time) = self.unrenewed {
            write!(f, ": no renewal succeeded for {:.1} s", time.as_secs_f64())?;
        }
        if let Some(cause) = &self.cause {
            write!(f, ", the last error is: {cause}")?;
        }
        if let Some(id) = &self.request_id {
            write!(f, " (lock_lost, request {id})")?;
        }
        Ok(())
    }
}

impl Problem {
    /// Reads the problem that an answer is. One that a proxy sent has no code.
    pub(crate) fn of(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Box<Problem> {
        let mut problem: Box<Problem> = serde_json::from_slice(body).unwrap_or_default();
        if problem.code.is_empty() {
            *problem = Problem {
                title: format!("the answer has the status {status}"),
                ..Problem::default()
            };
        }
        problem.status = status;
        problem.retry_after = retry_after;
        problem
    }

    /// Why the entry is gone, which the problem says.
    pub(crate) fn lost(&self, name: &str) -> Error {
        let reason = self.reason.as_deref().unwrap_or("unknown");
        let (revoke_reason, request_id) = (self.revoke_reason.clone(), self.request_id.clone());
        let (name, reason) = (name.into(), reason.into());
        let (unrenewed, cause) = (None, None);
        let lost = Lost { name, reason, revoke_reason, request_id, unrenewed, cause };
        Error::Lost(Box::new(lost))
    }
}

/// A loss that no server reported.
pub(crate) fn lost(name: &str, reason: &str) -> Error {
    Problem { reason: Some(reason.into()), ..Problem::default() }.lost(name)
}
