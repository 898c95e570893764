use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::builder::{Bearer, Builder, Trace};
use crate::clock::{Clock, Reading};
use crate::errors::Error;
use crate::transport::Transport;

/// How long [`Client::close`] lets calls that were cancelled leave their queues.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A timer stands still while the machine is suspended, so the client looks at the other clocks
/// once a second. Where they passed more time, the deadlines of its locks are nearer.
const WATCH_EVERY: Duration = Duration::from_secs(1);
const WATCH_SLACK: Duration = Duration::from_millis(50);

/// Acquires locks. Clones are the same client. A client belongs to one tokio runtime, and locks that
/// it holds keep it alive.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
}

/// What all calls and locks of a client share.
pub(crate) struct Shared {
    pub(crate) urls: Vec<String>,
    pub(crate) current: AtomicUsize, // index of the URL in use
    pub(crate) warned: AtomicBool,   // of a failure, and no server answered since
    pub(crate) token: Bearer,
    pub(crate) traceparent: Option<Trace>,
    pub(crate) retry_for: Duration,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) clock: Box<dyn Clock>,

    pub(crate) signal: watch::Sender<Signal>,
    pub(crate) tasks: watch::Sender<usize>, // that close waits for
    pub(crate) held: Mutex<(usize, Option<AbortHandle>)>, // locks, and what watches the clocks for them
}

/// What held locks and tasks have to know at once.
#[derive(Clone, Copy)]
pub(crate) struct Signal {
    pub(crate) phase: Phase,
    pub(crate) jumps: u64, // how often the machine was suspended
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(crate) enum Phase {
    Open,
    Closed,
    Stopped, // tasks end too
}

impl Client {
    /// A client of the servers at a base URL, or several with commas in between, with a bearer token
    /// that does not change. It sends no request.
    pub fn new(url: impl Into<String>, token: impl Into<String>) -> Result<Client, Error> {
        Client::builder().url(url).token(token).build()
    }

    /// A client of the servers at the URLs in the environment's `FENCEPOST_URL`, with the bearer
    /// token in `FENCEPOST_TOKEN`. The error names a variable that is missing.
    pub fn from_env() -> Result<Client, Error> {
        let var = |name| {
            std::env::var(name).map_err(|_| {
                Error::Config(format!("the environment variable {name} is missing or no text"))
            })
        };
        Client::new(var("FENCEPOST_URL")?, var("FENCEPOST_TOKEN")?)
    }

    /// Settings of a client.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Ends the calls under way, which leave their queues, and the renewal of all locks that the
    /// client still holds; their work has to stop. It does not release them: they expire with their
    /// TTL. It waits up to 2 s for releases and for calls that leave their queues. The error of
    /// other calls has the code `cancelled`.
    pub async fn close(&self) {
        self.shared.enter(Phase::Closed);
        let mut tasks = self.shared.tasks.subscribe();
        let _ = timeout(CLOSE_TIMEOUT, tasks.wait_for(|tasks| *tasks == 0)).await;
        self.shared.enter(Phase::Stopped);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("urls", &self.shared.urls).finish_non_exhaustive()
    }
}

impl Shared {
    /// How much time passed since a reading.
    pub(crate) fn since(&self, earlier: &Reading) -> Duration {
        self.clock.read().since(earlier)
    }

    /// The `traceparent` of the caller, or an empty text.
    pub(crate) fn trace(&self) -> String {
        self.traceparent.as_ref().and_then(|trace| trace()).unwrap_or_default()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.signal.borrow().phase != Phase::Open
    }

    fn enter(&self, phase: Phase) {
        self.signal.send_modify(|signal| {
            if phase > signal.phase {
                signal.phase = phase;
            }
        });
    }

    /// Waits until the client is closed.
    pub(crate) async fn closed(&self) {
        let _ = self.signal.subscribe().wait_for(|signal| signal.phase != Phase::Open).await;
    }

    /// Pauses, unless the client is closed.
    pub(crate) async fn pause(&self, time: Duration) -> Result<(), Error> {
        timeout(time, self.closed()).await.map_or(Ok(()), |()| Err(Error::Cancelled))
    }

    /// Warns of a failure, once until a server answers.
    pub(crate) fn warn(&self, url: &str, error: &Error) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            let why = match error {
                Error::NoAnswer(last) => last.causes(),
                error => error.to_string(),
            };
            log::warn!("fencepost: {url} does not answer, trying again: {why}");
        }
    }

    /// Has the next attempt use the next URL, unless another call did so already.
    pub(crate) fn pass_over(&self, at: usize) {
        let next = (at + 1) % self.urls.len();
        let _ = self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Runs a task that close waits for. When close returns, it ends those that still run.
    pub(crate) fn background(
        self: &Arc<Self>,
        runtime: &Handle,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let counted = Counted::new(self);
        let mut signal = self.signal.subscribe();
        runtime.spawn(async move {
            let _counted = counted;
            tokio::select! {
                biased;
                _ = signal.wait_for(|signal| signal.phase == Phase::Stopped) => {}
                _ = task => {}
            }
        });
    }

    /// Watches the clocks for as long as what it returns lives.
    pub(crate) fn hold(self: &Arc<Self>, runtime: &Handle) -> Holding {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.0 += 1;
        if held.0 == 1 {
            held.1 = Some(runtime.spawn(self.clone().watch()).abort_handle());
        }
        Holding(self.clone())
    }

    async fn watch(self: Arc<Self>) {
        let mut last = self.clock.read();
        loop {
            sleep(WATCH_EVERY).await;
            let now = self.clock.read();
            let slept =
                now.since(&last).saturating_sub(now.monotonic.saturating_sub(last.monotonic));
            last = now;
            if slept > WATCH_SLACK {
                self.signal.send_modify(|signal| signal.jumps += 1);
            }
        }
    }
}

/// A lock that is held.
pub(crate) struct Holding(Arc<Shared>);

impl Drop for Holding {
    fn drop(&mut self) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.0 -= 1;
        if held.0 == 0 {
            if let Some(watch) = held.1.take() {
                watch.abort();
            }
        }
    }
}

/// A task or call that close waits for.
pub(crate) struct Counted(Arc<Shared>);

impl Counted {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        shared.tasks.send_modify(|tasks| *tasks += 1);
        Counted(shared.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.tasks.send_modify(|tasks| *tasks -= 1);
    }
}
