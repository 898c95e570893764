//! Plays one vector in virtual time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencepost::seams::verify_at;
use fencepost::{Acquire, Claim, Client, Error, Event, Held, Pending};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{advance, sleep_until};

use crate::format::{Bodies, Outcome, Seen, Step, Term, Vector};
use crate::server::{Clocks, Scripted, World};

/// Plays a vector and returns what is not as it says.
pub fn play(vector: Vector, bodies: Bodies) -> Vec<String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(run(vector, bodies))
}

async fn run(vector: Vector, bodies: Bodies) -> Vec<String> {
    let config = vector.config;
    let world = World::new(vector.server, config.clock != "wall", bodies);
    let mut builder = Client::builder().token("T");
    for url in config.urls.unwrap_or(vec!["http://a".into()]) {
        builder = builder.url(url);
    }
    if let Some(seconds) = config.retry_for {
        builder = builder.retry_for(secs(seconds));
    }
    let trace = config.traceparent;
    let builder = builder.traceparent(move || trace.clone());
    let client = builder.seams(Scripted(world.clone()), Clocks(world.clone())).build().unwrap();
    let run = Run { world, client, calls: Arc::default() };
    let last = vector.steps.len() as u64 + 1;
    for (i, step) in vector.steps.into_iter().enumerate() {
        run.until(step.at, i as u64 + 1).await;
        run.step(step).await;
    }
    run.until(vector.until, last).await;
    run.end()
}

/// Calls of a run by name.
#[derive(Default)]
struct Calls {
    held: HashMap<String, Arc<Held>>,
    pending: HashMap<String, Pending>,
    cancels: HashMap<String, Arc<Notify>>,
    resigns: HashMap<String, Arc<Notify>>,
    open: Vec<(Step, Arc<Mutex<Outcome>>)>, // that have a result and have not ended
    due: Vec<String>,                       // what else has to be seen
    closed: bool,
}

#[derive(Clone)]
struct Run {
    world: Arc<World>,
    client: Client,
    calls: Arc<Mutex<Calls>>,
}

type Given = Result<(), Map<String, Value>>;

impl Run {
    async fn until(&self, seconds: f64, more: u64) {
        sleep_until(self.world.start + secs(seconds) + Duration::from_millis(more)).await;
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.calls.lock().unwrap()
    }

    async fn step(&self, step: Step) {
        match &*step.what {
            "pause" => advance(secs(step.seconds)).await,
            "suspend" => self.world.suspend(step.seconds),
            "wall" => self.world.set_wall(step.seconds),
            "cancel" => self.calls().cancels[&step.of].notify_one(),
            "resign" => self.calls().resigns[&step.of].notify_one(),
            _ => self.call(step),
        }
    }

    /// Runs a call beside the others, and compares how it ends.
    fn call(&self, step: Step) {
        let (run, got) = (self.clone(), Arc::new(Mutex::new(Outcome::default())));
        let cancel = Arc::new(Notify::new());
        self.calls().cancels.insert(step.name_of_call.clone(), cancel.clone());
        if step.result.is_some() {
            self.calls().open.push((step.clone(), got.clone()));
        }
        if step.lost.is_some() {
            self.calls().due.push(format!("{} is lost", step.name_of_call));
        }
        tokio::spawn(async move {
            let given = tokio::select! {
                given = run.begin(&step, &got) => given,
                // A campaign has no other end: dropped, it resigns.
                _ = cancel.notified() => match &*step.what {
                    "lead" => Ok(()),
                    _ => Err(Map::from_iter([("code".into(), "cancelled".into())])),
                },
            };
            if !run.world.is_over() {
                run.ends(&step, &got, given);
            }
        });
    }

    /// Compares how a call ended with what is said of it.
    fn ends(&self, step: &Step, got: &Arc<Mutex<Outcome>>, given: Given) {
        self.calls().open.retain(|(_, other)| !Arc::ptr_eq(got, other));
        let call = format!("{} {}{}", step.what, step.name_of_call, step.of);
        let cancelled = given.as_ref().is_err_and(|e| e["code"] == "cancelled");
        let Some(want) = &step.result else {
            if cancelled && self.calls().closed {
                return;
            }
            return self.world.fault(format!("{call} ends and has no result: {given:?}"));
        };
        if !want.at.include(self.world.now()) {
            self.world.fault(format!("{call} ends with {given:?}, want it at {:?}", want.at));
        }
        let fits = match (&want.error, &given) {
            (None, Ok(())) => true,
            (Some(want), Err(got)) => want.iter().all(|(name, value)| same(got.get(name), value)),
            _ => false,
        };
        if !fits {
            self.world.fault(format!("{call}: {given:?}, want {:?}", want.error));
        }
        self.compare(&call, want, &got.lock().unwrap());
    }

    fn compare(&self, call: &str, want: &Outcome, got: &Outcome) {
        let differs = want.fence.is_some() && want.fence != got.fence
            || want.fences.is_some() && want.fences != got.fences
            || want.names.is_some() && want.names != got.names
            || want.events.is_some()
                && want.events.as_deref() != Some(got.events.as_deref().unwrap_or(&[]))
            || want.terms.is_some()
                && want.terms.as_deref() != Some(got.terms.as_deref().unwrap_or(&[]))
            || want.waiting.is_some() && want.waiting != got.waiting
            || want.kind.is_some() && want.kind != got.kind
            || want.id.is_some() && want.id != got.id;
        if differs {
            self.world.fault(format!("{call} gives {got:?}, want {want:?}"));
        }
    }

    /// Compares what has not ended, and returns all faults.
    fn end(&self) -> Vec<String> {
        self.world.end();
        let (open, due) = {
            let mut calls = self.calls();
            (std::mem::take(&mut calls.open), std::mem::take(&mut calls.due))
        };
        for (step, got) in open {
            let call = format!("{} {}{}", step.what, step.name_of_call, step.of);
            match &step.result {
                Some(want) if want.at == Default::default() && want.error.is_none() => {
                    self.compare(&call, want, &got.lock().unwrap());
                }
                _ => self.world.fault(format!("{call} does not end")),
            }
        }
        for due in due {
            self.world.fault(format!("not seen: {due}"));
        }
        self.world.faults()
    }

    async fn begin(&self, step: &Step, got: &Arc<Mutex<Outcome>>) -> Given {
        let client = &self.client;
        let held = match &*step.what {
            "lock" => self.with(step, client.lock(&step.name)).await,
            "try_lock" => self.with(step, client.try_lock(&step.name)).await,
            "lock_set" => self.with(step, client.lock_set(claims(step))).await,
            "try_lock_set" => self.with(step, client.try_lock_set(claims(step))).await,
            "lock_any" => self.with(step, client.lock_any(claims(step), step.any)).await,
            "try_lock_any" => self.with(step, client.try_lock_any(claims(step), step.any)).await,
            "adopt" => self.with(step, client.adopt(&step.name, &step.token)).await,
            "claim" => {
                let event: Event = serde_json::from_value(self.world.body(&step.event)).unwrap();
                self.with(step, client.claim(&event)).await
            }
            "wait" => {
                let mut pending = self.calls().pending.remove(&step.of).unwrap();
                let held = pending.wait().await;
                self.calls().pending.insert(step.of.clone(), pending);
                held
            }
            _ => return self.other(step, got).await.map_err(|e| fields(&e)),
        };
        let held = Arc::new(held.map_err(|e| fields(&e))?);
        {
            let mut got = got.lock().unwrap();
            got.fence = Some(held.fence());
            got.fences = Some(held.fences().clone());
        }
        self.calls().held.insert(step.name_of_call.clone(), held.clone());
        let (run, step) = (self.clone(), step.clone());
        tokio::spawn(async move { run.follow(&step, held.lost().await) });
        Ok(())
    }

    async fn other(&self, step: &Step, got: &Arc<Mutex<Outcome>>) -> Result<(), Error> {
        let client = &self.client;
        match &*step.what {
            "async" => {
                let mut acquire = self.with(step, client.async_acquire(&step.name));
                if let Some(url) = &step.callback_url {
                    acquire = acquire.callback_url(url);
                }
                let pending = acquire.await?;
                got.lock().unwrap().id = Some(pending.id().into());
                self.calls().pending.insert(step.name_of_call.clone(), pending);
            }
            "leave" => {
                let pending = self.calls().pending.remove(&step.of).unwrap();
                pending.leave().await?;
            }
            "release" => {
                let held = self.calls().held[&step.of].clone();
                held.release().await?;
            }
            "check" => self.calls().held[&step.of].check()?,
            "close" => {
                // Calls under way may end without a result.
                self.calls().closed = true;
                client.close().await;
            }
            "look" => {
                let lock = client.look(&step.name).await?;
                let mut got = got.lock().unwrap();
                (got.fence, got.waiting) = (Some(lock.fence), Some(lock.waiting));
            }
            "list" => {
                let mut list = client.list();
                if let Some(prefix) = &step.prefix {
                    list = list.prefix(prefix);
                }
                if let Some(state) = &step.state {
                    list = list.state(state);
                }
                while let Some(lock) = list.next().await? {
                    got.lock().unwrap().names.get_or_insert_default().push(lock.name);
                }
            }
            "events" => self.events(step, got).await?,
            "stale_write" => {
                let (presented, known) = (step.fence_presented, step.fence_known);
                client.stale_write(&step.name, presented, known, &step.resource).await?;
            }
            "verify" => {
                let mut headers = HeaderMap::new();
                for (name, value) in &step.headers {
                    let name = HeaderName::try_from(name).unwrap();
                    headers.insert(name, HeaderValue::try_from(value).unwrap());
                }
                let event = verify_at(step.now, &headers, step.payload.as_bytes(), &step.secrets)?;
                let mut got = got.lock().unwrap();
                (got.id, got.kind) = (Some(event.id), Some(event.kind));
            }
            "lead" => self.lead(step, got).await?,
            other => panic!("there is no step {other}"),
        }
        Ok(())
    }

    /// Sets the options of a step.
    fn with<T>(&self, step: &Step, mut acquire: Acquire<T>) -> Acquire<T> {
        if let Some(ttl) = step.ttl {
            acquire = acquire.ttl(secs(ttl));
        }
        if let Some(wait) = step.wait {
            acquire = acquire.wait(secs(wait));
        }
        match (step.mode.as_deref(), step.limit) {
            (Some("shared"), None) => acquire = acquire.shared(),
            (Some("semaphore"), Some(limit)) => acquire = acquire.semaphore(limit),
            (None, None) => {}
            mode => panic!("there is no mode {mode:?}"),
        }
        if let Some(permits) = step.permits {
            acquire = acquire.permits(permits);
        }
        if step.only_newest {
            acquire = acquire.only_newest();
        }
        if let Some(holder) = &step.holder {
            acquire = acquire.holder(holder);
        }
        for (key, value) in &step.metadata {
            acquire = acquire.metadata(key, value);
        }
        if let Some(within) = step.request_release {
            acquire = acquire.request_release(secs(within));
        }
        if let Some(margin) = step.margin {
            acquire = acquire.margin(secs(margin));
        }
        if let Some(time) = step.at_least {
            acquire = acquire.at_least(secs(time));
        }
        let (world, want) = (self.world.clone(), step.release_requested.clone());
        for asked in &want {
            self.calls().due.push(format!("{} asks {}", asked.by, step.name_of_call));
        }
        let (calls, name, seen) = (self.calls.clone(), step.name_of_call.clone(), Mutex::new(0));
        acquire.on_release_requested(move |asked| {
            let mut seen = seen.lock().unwrap();
            match want.get(*seen) {
                Some(w) if w.by == asked.by && w.at.include(world.now()) => {
                    *seen += 1;
                    calls.lock().unwrap().due.retain(|due| *due != format!("{} asks {name}", w.by));
                }
                want => world.fault(format!("{} asks for the release, want {want:?}", asked.by)),
            }
        })
    }

    /// Compares when and why the work is stopped.
    fn follow(&self, step: &Step, why: Error) {
        let Some(lost) = why.lost().filter(|lost| lost.reason != "closed") else { return };
        if self.world.is_over() {
            return;
        }
        let name = &step.name_of_call;
        match &step.lost {
            Some(want)
                if want.at.include(self.world.now())
                    && want.reason == lost.reason
                    && want.revoke_reason == lost.revoke_reason.as_deref().unwrap_or_default() =>
            {
                self.calls().due.retain(|due| *due != format!("{name} is lost"));
            }
            want => self.world.fault(format!("{name} is lost: {why}, want {want:?}")),
        }
    }

    async fn events(&self, step: &Step, got: &Arc<Mutex<Outcome>>) -> Result<(), Error> {
        let mut events = self.client.events();
        if let Some(types) = &step.types {
            events = events.types(types);
        }
        if let Some(locks) = &step.locks {
            events = events.locks(locks);
        }
        if let Some(after) = &step.after {
            events = events.after(after);
        }
        let want = step.result.clone().unwrap_or_default().events.unwrap_or_default();
        while let Some(event) = events.next().await {
            let event = event?;
            let mut got = got.lock().unwrap();
            let seen = got.events.get_or_insert_default();
            let at = want.get(seen.len()).map(|w| w.at).unwrap_or_default();
            if !at.include(self.world.now()) {
                self.world.fault(format!("event {} comes, want it at {at:?}", event.id));
            }
            seen.push(Seen { at, id: event.id, kind: event.kind });
        }
        Ok(())
    }

    async fn lead(&self, step: &Step, got: &Arc<Mutex<Outcome>>) -> Result<(), Error> {
        let want = step.result.clone().unwrap_or_default().terms.unwrap_or_default();
        let resign = Arc::new(Notify::new());
        self.calls().resigns.insert(step.name_of_call.clone(), resign.clone());
        let work = |term: fencepost::Term| {
            let fence = term.fence();
            let (got, resign, world) = (got.clone(), resign.clone(), self.world.clone());
            let (begun, want) = (world.now(), want.clone());
            let ends = TermEnds(Box::new(move || {
                let mut got = got.lock().unwrap();
                let terms = got.terms.get_or_insert_default();
                let want = want.get(terms.len());
                let (at, ended) = want.map(|w| (w.at, w.ended)).unwrap_or_default();
                if !at.include(begun) || !ended.include(world.now()) {
                    world.fault(format!("term {fence} began at {begun}, want {want:?}"));
                }
                terms.push(Term { fence, at, ended });
            }));
            async move {
                let _ends = ends;
                resign.notified().await;
            }
        };
        self.with(step, self.client.lead(&step.name)).run(work).await
    }
}

/// Reports the end of a term: that the work is done or dropped.
struct TermEnds(Box<dyn FnMut() + Send>);

impl Drop for TermEnds {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn claims(step: &Step) -> Vec<Claim> {
    let claim = |c: &crate::format::Claim| match (c.mode.as_deref(), c.limit, c.permits) {
        (Some("shared"), None, None) => Claim::from(&*c.name).shared(),
        (Some("semaphore"), Some(limit), None) => Claim::from(&*c.name).semaphore(limit),
        (Some("semaphore"), Some(limit), Some(permits)) => {
            Claim::from(&*c.name).semaphore(limit).permits(permits)
        }
        (None, None, None) => Claim::from(&*c.name),
        mode => panic!("there is no mode {mode:?}"),
    };
    step.claims.iter().map(claim).collect()
}

/// What vectors say of an error.
fn fields(error: &Error) -> Map<String, Value> {
    let mut fields = Map::from_iter([("code".to_string(), error.code().into())]);
    let mut add = |name: &str, value: Value| fields.insert(name.into(), value);
    if let Some(lost) = error.lost() {
        add("reason", lost.reason.clone().into());
        add("revoke_reason", lost.revoke_reason.clone().into());
        add("request_id", lost.request_id.clone().into());
    }
    if let Some(problem) = error.problem() {
        add("status", problem.status.into());
        add("reason", problem.reason.clone().into());
        add("request_id", problem.request_id.clone().into());
        add("retry_after", problem.retry_after.unwrap_or_default().as_secs_f64().into());
        if let Some(first) = problem.holders.first() {
            add("holder", first.holder.clone().into());
        }
    }
    fields
}

fn same(got: Option<&Value>, want: &Value) -> bool {
    match (got.and_then(Value::as_f64), want.as_f64()) {
        (Some(got), Some(want)) => got == want,
        _ => got == Some(want),
    }
}
