//! One request, and what repeats it.

use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use reqwest::header::HeaderValue;
use tokio::time::{sleep, timeout};

use crate::client::Shared;
use crate::clock::Reading;
use crate::errors::{no_answer, unsent, Error, Problem};
use crate::transport::{Cause, Request, Response};
use crate::types::Entry;

/// How long an attempt takes at most that does not wait for a lock.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 16 << 20; // bytes

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(5);
const MIN_PAUSE: Duration = Duration::from_millis(100); // while a lock is held

/// A request, wherever it is sent.
#[derive(Default)]
pub(crate) struct Call {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) token: String,
    pub(crate) key: String,
    pub(crate) after: String,
    pub(crate) prefer: String,
    pub(crate) trace: String,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) timeout: Duration,
}

impl Call {
    /// Whether a name in the path is empty or of dots: URLs read that as another path.
    fn strays(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        path.split('/').skip(1).any(|part| matches!(part, "" | "." | ".."))
    }
}

/// Why an attempt failed.
pub(crate) enum Failure {
    /// No other attempt can succeed.
    Final(Error),
    /// Another attempt may succeed.
    Again(Again),
}

pub(crate) struct Again {
    pub(crate) error: Error,
    /// The pause that the server asks for.
    pub(crate) after: Option<Duration>,
    pub(crate) then: Then,
}

/// Where and when the next attempt is made.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    /// Nothing failed: now, at the same URL.
    Now,
    /// The server works, and refuses: at the same URL after a pause.
    Here,
    /// At the next URL, and after a pause once all have failed.
    Elsewhere,
}

impl Failure {
    pub(crate) fn no_answer(cause: impl Into<Cause>) -> Failure {
        Failure::Again(Again { error: no_answer(cause), after: None, then: Then::Elsewhere })
    }

    /// A request that the client, or its HTTP library, refuses to send.
    fn unsent(why: impl Into<String>) -> Failure {
        Failure::Final(unsent("invalid_request", why))
    }

    /// The failure, with the base URL at which it came.
    pub(crate) fn at(mut self, base: &str) -> Failure {
        if let Failure::Again(Again { error: Error::NoAnswer(last), .. }) = &mut self {
            last.url = Some(base.into());
        }
        self
    }

    /// The error of an answer without success.
    pub(crate) fn of(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Failure {
        let then = match status {
            429 if retry_after.is_some() => Then::Here,
            500.. => Then::Elsewhere,
            _ => return Failure::Final(Error::Refused(Problem::of(status, retry_after, body))),
        };
        let error = Error::Refused(Problem::of(status, retry_after, body));
        Failure::Again(Again { error, after: retry_after, then })
    }
}

impl Shared {
    /// Sends a call and returns the response when its head is there.
    pub(crate) async fn open(&self, base: &str, call: &Call) -> Result<Response, Failure> {
        let bearer = (self.token)().await.map_err(Failure::no_answer)?;
        let bearer = bearer_token(&bearer).map_err(Failure::unsent)?;
        let mut headers = vec![("authorization", format!("Bearer {bearer}"))];
        for (name, value) in [
            ("lock-token", &call.token),
            ("idempotency-key", &call.key),
            ("last-event-id", &call.after),
            ("prefer", &call.prefer),
            ("traceparent", &call.trace),
        ] {
            if !value.is_empty() {
                headers.push((name, value.clone()));
            }
        }
        if call.body.is_some() {
            headers.push(("content-type", "application/json".into()));
        }
        if let Some((name, _)) = headers.iter().find(|(_, v)| HeaderValue::from_str(v).is_err()) {
            return Err(Failure::unsent(format!("the header {name} has a control character")));
        }
        let url = format!("{base}{}", call.path);
        let request = Request { method: call.method, url, headers, body: call.body.clone() };
        let response = self.send(request).await.map_err(|cause| {
            match cause.downcast_ref::<reqwest::Error>() {
                Some(error) if error.is_builder() => Failure::unsent(error.to_string()),
                _ => Failure::no_answer(cause),
            }
        })?;
        if response.status < 500 {
            self.warned.store(false, Ordering::Relaxed);
        }
        Ok(response)
    }

    /// Sends a request. The HTTP library panics if the system refuses it a thread: that costs an
    /// attempt, and no lock.
    async fn send(&self, request: Request) -> Result<Response, Cause> {
        let mut sending = self.transport.send(request);
        poll_fn(|context| {
            catch_unwind(AssertUnwindSafe(|| sending.as_mut().poll(context)))
                .unwrap_or_else(|_| Poll::Ready(Err("the HTTP library panicked".into())))
        })
        .await
    }

    /// Makes one attempt, and returns the body of a success.
    pub(crate) async fn attempt(&self, base: &str, call: &Call) -> Result<Vec<u8>, Failure> {
        if call.strays() {
            let title = "the name of a lock is not empty, and no dots alone";
            return Err(Failure::Final(unsent("invalid_name", title)));
        }
        let answer = async { read(self.open(base, call).await?).await };
        timeout(call.timeout, answer)
            .await
            .unwrap_or_else(|_| Err(Failure::no_answer("the attempt took too long")))
    }

    /// Makes one attempt of a call whose answer is an entry.
    pub(crate) async fn attempt_entry(&self, base: &str, call: &Call) -> Result<Entry, Failure> {
        let body = self.attempt(base, call).await?;
        match serde_json::from_slice::<Entry>(&body) {
            Ok(entry) if !entry.token.0.is_empty() && entry.ttl_seconds > 0.0 => Ok(entry),
            _ => Err(Failure::no_answer("what answered is no server")),
        }
    }

    /// Sends a call until a server answers it for good.
    pub(crate) async fn ask(&self, mut call: Call) -> Result<Vec<u8>, Error> {
        call.timeout = REQUEST_TIMEOUT;
        let begun = self.clock.read();
        repeat(self, &mut Ask { client: self, call, begun }).await
    }
}

/// Reads the whole body of a success, or the failure that the answer is.
pub(crate) async fn read(mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.body.chunk().await.map_err(Failure::no_answer)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER {
            return Err(Failure::no_answer("the answer is too long"));
        }
    }
    match response.status {
        ..300 => Ok(body),
        status => Err(Failure::of(status, seconds(response.retry_after.as_deref()), &body)),
    }
}

/// Reads `Retry-After` in seconds; servers of Fencepost send no dates.
fn seconds(retry_after: Option<&str>) -> Option<Duration> {
    let seconds = retry_after?.parse().ok().filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds))
}

/// What [`repeat`] repeats.
pub(crate) trait Attempt: Send {
    type Output: Send;
    /// The limit is the deadline of a held lock: pauses are shortened to fit.
    const HELD: bool = false;
    /// The call goes on after the client is closed.
    fn outlives(&self) -> bool {
        false
    }
    /// How long the call may still take.
    fn left(&self) -> Duration;
    /// Makes one attempt at a base URL.
    fn attempt(&mut self, base: &str)
        -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// Makes attempts until one succeeds or fails for good, the limit has come, or the client is closed.
pub(crate) async fn repeat<A: Attempt>(client: &Shared, call: &mut A) -> Result<A::Output, Error> {
    if call.outlives() {
        return attempts(client, call).await;
    }
    tokio::select! {
        biased;
        _ = client.closed() => Err(Error::Cancelled),
        done = attempts(client, call) => done,
    }
}

/// After a failure the next attempt is at the next URL at once; after all have failed, after a pause.
async fn attempts<A: Attempt>(client: &Shared, call: &mut A) -> Result<A::Output, Error> {
    let (mut failures, mut pauses) = (0, 0);
    let mut last = no_answer("there was no time to ask one");
    loop {
        let (left, at) = (call.left(), client.current.load(Ordering::Relaxed));
        if left.is_zero() {
            return Err(last);
        }
        let base = &*client.urls[at];
        let attempt = timeout(left, call.attempt(base)).await;
        let attempt = attempt.unwrap_or_else(|_| Err(Failure::no_answer("the time is up")));
        let again = match attempt.map_err(|failure| failure.at(base)) {
            Ok(output) => return Ok(output),
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Again(again)) => again,
        };
        match again.then {
            Then::Now => {
                (failures, pauses) = (0, 0);
                continue;
            }
            Then::Here => {}
            Then::Elsewhere => {
                client.warn(base, &again.error);
                client.pass_over(at);
                failures += 1;
            }
        }
        last = again.error;
        if again.then == Then::Elsewhere && failures % client.urls.len() != 0 {
            continue;
        }
        let pause = pause::<A>(again.after, pauses, call.left());
        pauses += 1;
        if pause >= call.left() {
            return Err(last);
        }
        sleep(pause).await;
    }
}

/// How long to wait before the next attempt. A held lock is renewed in time rather than when the
/// server likes: a third of what is left is the most.
fn pause<A: Attempt>(asked: Option<Duration>, pauses: u32, left: Duration) -> Duration {
    let pause = asked.unwrap_or_else(|| backoff(pauses));
    if A::HELD {
        pause.min(MIN_PAUSE.max(left / 3))
    } else {
        pause
    }
}

/// Half to all of 0.2 s, doubled for each pause before, 5 s at most.
pub(crate) fn backoff(pauses: u32) -> Duration {
    let most = (FIRST_PAUSE * (1 << pauses.min(10))).min(MAX_PAUSE);
    most.mul_f64(0.5 + 0.5 * random())
}

/// A number from 0 to 1.
pub(crate) fn random() -> f64 {
    let bits = getrandom::u64().expect("the system has random numbers");
    bits as f64 / u64::MAX as f64
}

struct Ask<'a> {
    client: &'a Shared,
    call: Call,
    begun: Reading,
}

impl Attempt for Ask<'_> {
    type Output = Vec<u8>;

    fn left(&self) -> Duration {
        self.client.retry_for.saturating_sub(self.client.since(&self.begun))
    }

    async fn attempt(&mut self, base: &str) -> Result<Vec<u8>, Failure> {
        self.client.attempt(base, &self.call).await
    }
}

/// A bearer token as it is sent. A file or a secret often ends in a line break.
pub(crate) fn bearer_token(token: &str) -> Result<&str, &'static str> {
    match token.trim() {
        "" => Err("the bearer token is empty"),
        token if token.bytes().all(|b| b.is_ascii_graphic()) => Ok(token),
        _ => Err("the bearer token has a character that is not visible ASCII"),
    }
}

/// Encodes a text as one segment of a path or as a value of a query.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'.'
            | b'_'
            | b'~'
            | b':'
            | b'@'
            | b'='
            | b'-'
            | b','
            | b'*' => escaped.push(byte.into()),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
