use std::fmt;
use std::future::Future;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::client::{Client, Phase, Shared, Signal};
use crate::clock::{Clock, Machine};
use crate::errors::Error;
use crate::transport::{http, BoxFuture, Transport};

pub(crate) type Bearer = Box<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;
pub(crate) type Trace = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Settings of a [`Client`]. At least one URL and the token are needed.
#[derive(Default)]
#[must_use]
pub struct Builder {
    urls: Vec<String>,
    token: Option<Bearer>,
    traceparent: Option<Trace>,
    retry_for: Option<Duration>,
    transport: Option<Box<dyn Transport>>,
    clock: Option<Box<dyn Clock>>,
}

impl Builder {
    /// Adds the base address of a replica, or of what balances requests over replicas. The client
    /// uses one address until it fails, then the next.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.urls.push(url.into());
        self
    }

    /// Sets what returns the bearer token of the next request. Its error is a request without an
    /// answer: the client tries again.
    pub fn token<F, T>(mut self, token: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<String, Box<dyn std::error::Error + Send + Sync>>>
            + Send
            + 'static,
    {
        self.token = Some(Box::new(move || {
            let token = token();
            Box::pin(async { token.await.map_err(|e| e.to_string()) })
        }));
        self
    }

    /// Sets what returns the `traceparent` of the caller. The client asks once for each call, in the
    /// task of the caller; a held lock keeps it.
    pub fn traceparent<F>(mut self, traceparent: F) -> Self
    where
        F: Fn() -> Option<String> + Send + Sync + 'static,
    {
        self.traceparent = Some(Box::new(traceparent));
        self
    }

    /// Sets how long a call repeats a request that the servers do not answer, or answer with 503 or
    /// 429, beyond the time that it waits for a lock. 30 s by default. It does not apply to a held
    /// lock, whose limit is its deadline.
    pub fn retry_for(mut self, time: Duration) -> Self {
        self.retry_for = Some(time);
        self
    }

    /// Sets what sends requests. It must have no timeout of its own: a request that waits is open
    /// for 50 s. It should follow no redirects.
    pub fn http(mut self, client: reqwest::Client) -> Self {
        self.transport = Some(Box::new(client));
        self
    }

    #[cfg(feature = "seams")]
    #[doc(hidden)]
    pub fn seams(
        mut self,
        transport: impl Transport + 'static,
        clock: impl Clock + 'static,
    ) -> Self {
        self.transport = Some(Box::new(transport));
        self.clock = Some(Box::new(clock));
        self
    }

    /// Builds the client. The error has the code `config`.
    pub fn build(self) -> Result<Client, Error> {
        let Some(token) = self.token.filter(|_| !self.urls.is_empty()) else {
            return Err(Error::Config("a URL and a token are required".into()));
        };
        let mut urls = Vec::new();
        for url in &self.urls {
            let parsed = reqwest::Url::parse(url).map_err(|e| Error::Config(e.to_string()))?;
            let plain = parsed.query().is_none() && parsed.username().is_empty();
            if !plain || parsed.password().is_some() || !matches!(parsed.scheme(), "http" | "https")
            {
                return Err(Error::Config(
                    "a base URL is http or https, without user and query".into(),
                ));
            }
            urls.push(url.trim_end_matches('/').to_string());
        }
        let transport = match self.transport {
            Some(transport) => transport,
            None => Box::new(http().map_err(|e| Error::Config(e.to_string()))?),
        };
        Ok(Client {
            shared: Arc::new(Shared {
                urls,
                current: AtomicUsize::new(0),
                token,
                traceparent: self.traceparent,
                retry_for: self.retry_for.unwrap_or(Duration::from_secs(30)),
                transport,
                clock: self.clock.unwrap_or_else(|| Box::new(Machine { start: Instant::now() })),
                signal: watch::Sender::new(Signal { phase: Phase::Open, jumps: 0 }),
                tasks: watch::Sender::new(0),
                held: Mutex::default(),
            }),
        })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}
