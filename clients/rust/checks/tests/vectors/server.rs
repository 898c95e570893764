//! The scripted server and the clocks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencepost::seams::{Body, BoxFuture, Cause, Clock, Reading, Request, Response, Transport};
use serde_json::Value;
use tokio::time::{sleep, Instant};

use crate::format::{Bodies, Bounds, Chunk, Exchange};

/// What the server, the clocks and the calls of a run share.
pub struct World {
    pub start: Instant,
    pub has_boot_clock: bool,
    pub bodies: Bodies,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    server: Vec<Exchange>,
    next: usize,                    // of server
    bound: HashMap<String, String>, // what $names stand for
    slept: Duration,                // that the monotonic clock does not show
    wall: f64,                      // by which the wall clock was set
    over: bool,
    faults: Vec<String>,
}

impl World {
    pub fn new(server: Vec<Exchange>, has_boot_clock: bool, bodies: Bodies) -> Arc<World> {
        let state = Mutex::new(State { server, ..State::default() });
        Arc::new(World { start: Instant::now(), has_boot_clock, bodies, state })
    }

    pub fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub fn fault(&self, text: String) {
        self.state.lock().unwrap().faults.push(format!("{:.3}: {text}", self.now()));
    }

    pub fn is_over(&self) -> bool {
        self.state.lock().unwrap().over
    }

    pub fn suspend(&self, seconds: f64) {
        self.state.lock().unwrap().slept += Duration::from_secs_f64(seconds);
    }

    pub fn set_wall(&self, seconds: f64) {
        self.state.lock().unwrap().wall += seconds;
    }

    /// Ends the run: what comes later is not looked at.
    pub fn end(&self) {
        let mut state = self.state.lock().unwrap();
        state.over = true;
        let rest = state.next..state.server.len();
        let missing: Vec<String> = state.server[rest]
            .iter()
            .filter(|e| e.during.is_none() || e.answered < e.least)
            .map(|e| format!("request did not come: {}", e.request))
            .collect();
        state.faults.extend(missing);
    }

    pub fn faults(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().faults)
    }

    /// What the name of a body stands for.
    pub fn body(&self, body: &Value) -> Value {
        match body {
            Value::String(name) => match self.bodies.get(name) {
                Some(body) => body.clone(),
                None => {
                    self.fault(format!("there is no body {name}"));
                    Value::Null
                }
            },
            body => body.clone(),
        }
    }

    /// Finds the exchange of a request, and compares the request with it.
    fn take(&self, request: &Request) -> Option<Script> {
        let at = self.now();
        let mut state = self.state.lock().unwrap();
        if state.over {
            return None;
        }
        let state = &mut *state;
        if let Some(e) = state.server.get(state.next) {
            if e.during.is_some_and(|during| at > during[1]) {
                if e.answered < e.least {
                    state.faults.push(format!(
                        "{} requests came, want {}: {}",
                        e.answered, e.least, e.request
                    ));
                }
                state.next += 1;
            }
        }
        let is = format!("{} {}", request.method, request.url);
        let Some(e) = state.server.get_mut(state.next) else {
            state.faults.push(format!("{at:.3}: unexpected request {is}"));
            return None;
        };
        e.answered += 1;
        let bounds = match e.during {
            Some(during) => Bounds(Some(during)),
            None => {
                state.next += 1;
                e.at
            }
        };
        let faults = compare(request, e, &mut state.bound);
        if !bounds.include(at) || !faults.is_empty() {
            let want = (&e.request, bounds.0);
            state.faults.push(format!("{at:.3}: request {is}, want {want:?} {faults:?}"));
        }
        Some(Script {
            delay: if e.fault == "hang" { f64::MAX } else { e.delay },
            status: e.status,
            retry_after: e.answer.get("Retry-After").cloned(),
            body: e.body.clone().unwrap_or(Value::Object(Default::default())),
            fault: e.fault.clone(),
            given_up: e.given_up,
            stream: e.stream.clone(),
        })
    }
}

/// Says in what a request is not the expected one.
fn compare(request: &Request, e: &Exchange, bound: &mut HashMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    let is = format!("{} {}", request.method, request.url);
    if parts(&is) != parts(&e.request) {
        faults.push("another request".into());
    }
    let sent: Option<Value> =
        request.body.as_deref().map(|body| serde_json::from_slice(body).unwrap());
    match (&e.send, &sent) {
        (None, None) => {}
        (Some(want), Some(got)) if matches(want, got, bound) => {}
        (want, got) => faults.push(format!("it sends {got:?}, want {want:?}")),
    }
    let kind = if sent.is_some() { "application/json" } else { "" };
    let mut want = BTreeMap::from([
        ("authorization".to_string(), "Bearer T"),
        ("idempotency-key".to_string(), &e.key),
        ("lock-token".to_string(), &e.token),
        ("last-event-id".to_string(), ""),
        ("content-type".to_string(), kind),
        ("traceparent".to_string(), ""),
    ]);
    want.extend(e.headers.iter().map(|(name, value)| (name.to_lowercase(), &**value)));
    for (name, want) in want {
        let got = request.headers.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value);
        if !matches(&want.into(), &got.into(), bound) {
            faults.push(format!("it has {name} {got:?}, want {want:?}"));
        }
    }
    faults
}

/// Method and URL, and the decoded parameters of the query in any order.
fn parts(request: &str) -> (String, Vec<(String, String)>) {
    let (method, url) = request.split_once(' ').unwrap();
    let mut url = reqwest::Url::parse(url).unwrap();
    let mut query: Vec<_> = url.query_pairs().into_owned().collect();
    query.sort();
    url.set_query(None);
    (format!("{method} {url}"), query)
}

/// Compares JSON values. A string that begins with $ is equal to what it stood for before, or to
/// anything new.
fn matches(want: &Value, got: &Value, bound: &mut HashMap<String, String>) -> bool {
    match (want, got) {
        (Value::String(want), Value::String(got)) if want.starts_with('$') => match bound.get(want)
        {
            Some(known) => known == got,
            None if got.is_empty() || bound.values().any(|other| other == got) => false,
            None => bound.insert(want.clone(), got.clone()).is_none(),
        },
        (Value::Object(want), Value::Object(got)) => {
            want.len() == got.len()
                && want.iter().all(|(k, v)| got.get(k).is_some_and(|g| matches(v, g, bound)))
        }
        (Value::Array(want), Value::Array(got)) => {
            want.len() == got.len() && want.iter().zip(got).all(|(w, g)| matches(w, g, bound))
        }
        (Value::Number(want), Value::Number(got)) => want.as_f64() == got.as_f64(),
        (want, got) => want == got,
    }
}

/// How a request is answered.
struct Script {
    delay: f64,
    status: u16,
    retry_after: Option<String>,
    body: Value,
    fault: String,
    given_up: Option<Bounds>,
    stream: Option<Vec<Chunk>>,
}

/// Reports a request that the client closes before its answer.
struct Open<'a> {
    world: &'a World,
    given_up: Option<Bounds>,
    may_hang: bool,
    answered: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let (now, over) = (self.world.now(), self.world.is_over());
        match (self.answered, self.given_up) {
            _ if over => {}
            (true, None) => {}
            (true, Some(_)) => self.world.fault("a request is not given up".into()),
            (false, Some(bounds)) if bounds.include(now) => {}
            (false, None) if self.may_hang => {}
            (false, want) => self.world.fault(format!("a request is given up, want {want:?}")),
        }
    }
}

/// Sends requests to the script of a world.
pub struct Scripted(pub Arc<World>);

impl Transport for Scripted {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Cause>> {
        Box::pin(async move {
            let Some(script) = self.0.take(&request) else {
                return std::future::pending().await;
            };
            let may_hang = script.fault == "hang";
            let given_up = script.given_up;
            let mut open = Open { world: &self.0, given_up, may_hang, answered: false };
            sleep(Duration::try_from_secs_f64(script.delay).unwrap_or(Duration::MAX)).await;
            open.answered = true;
            if script.fault == "cut" {
                return Err("connection reset".into());
            }
            let text = match self.0.body(&script.body) {
                Value::String(text) => text,
                body => body.to_string(),
            };
            let cut = script.fault == "cut-body";
            let half = if cut { text.len() / 2 } else { text.len() };
            let whole = vec![Chunk { after: 0.0, text: text[..half].into() }];
            let mut chunks = script.stream.unwrap_or(whole);
            chunks.reverse();
            let (status, retry_after) = (script.status, script.retry_after);
            Ok(Response { status, retry_after, body: Box::new(Chunks { chunks, cut }) })
        })
    }
}

struct Chunks {
    chunks: Vec<Chunk>, // the last comes first
    cut: bool,
}

impl Body for Chunks {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Cause>> {
        Box::pin(async {
            let Some(chunk) = self.chunks.last_mut() else {
                return if self.cut { Err("unexpected end".into()) } else { Ok(None) };
            };
            if chunk.after > 0.0 {
                sleep(Duration::from_secs_f64(chunk.after)).await;
            }
            Ok(self.chunks.pop().map(|chunk| chunk.text.into_bytes()))
        })
    }
}

/// The clocks of a world.
pub struct Clocks(pub Arc<World>);

impl Clock for Clocks {
    fn read(&self) -> Reading {
        let monotonic = self.0.start.elapsed();
        let state = self.0.state.lock().unwrap();
        let awake = monotonic + state.slept;
        let boot = self.0.has_boot_clock.then_some(Duration::from_secs(60) + awake);
        let wall = Duration::from_secs_f64(1e6 + awake.as_secs_f64() + state.wall);
        Reading { monotonic, boot, wall }
    }
}
