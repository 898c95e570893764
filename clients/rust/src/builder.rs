use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::client::{Client, Phase, Shared, Signal};
use crate::clock::{Clock, Machine};
use crate::errors::Error;
use crate::request::bearer_token;
use crate::transport::{defaults, BoxFuture, Cause, Http, Transport};

pub(crate) type Bearer = Box<dyn Fn() -> BoxFuture<'static, Result<String, Cause>> + Send + Sync>;
pub(crate) type Trace = Box<dyn Fn() -> Option<String> + Send + Sync>;

enum Token {
    Fixed(String),
    From(Bearer),
}

/// Settings of a [`Client`]. At least one URL and the token are needed.
#[derive(Default)]
#[must_use]
pub struct Builder {
    urls: Vec<String>,
    token: Option<Token>,
    traceparent: Option<Trace>,
    retry_for: Option<Duration>,
    transport: Option<Box<dyn Transport>>,
    http: Option<Box<dyn Fn() -> reqwest::ClientBuilder>>,
    clock: Option<Box<dyn Clock>>,
}

impl Builder {
    /// Adds the base address of a replica, or of what balances requests over replicas; or several
    /// with commas in between. The client uses one address until it fails, then the next.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.urls.push(url.into());
        self
    }

    /// Sets the bearer token. Blanks and line breaks around it are dropped.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Token::Fixed(token.into()));
        self
    }

    /// Sets what returns the bearer token of the next request, which is trimmed, too. Its error is a
    /// request without an answer: the client tries again.
    pub fn token_from<F, T>(mut self, token: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<String, Cause>> + Send + 'static,
    {
        self.token = Some(Token::From(Box::new(move || Box::pin(token()))));
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

    /// Sets what returns the settings of the HTTP library, such as roots of certificates. The
    /// function is called up to twice. The client adds that only HTTP/1.1 is used, that no redirect
    /// is followed, and that no proxy is used for loopback. The settings must have no timeout of
    /// whole requests: one that waits is open for 50 s.
    pub fn http<F>(mut self, settings: F) -> Self
    where
        F: Fn() -> reqwest::ClientBuilder + 'static,
    {
        self.http = Some(Box::new(settings));
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
        let token: Bearer = match self.token {
            None => return Err(Error::Config("a bearer token is required".into())),
            Some(Token::From(token)) => token,
            Some(Token::Fixed(token)) => {
                let token = bearer_token(&token).map_err(|why| Error::Config(why.into()))?;
                let token = token.to_string();
                Box::new(move || Box::pin(std::future::ready(Ok(token.clone()))))
            }
        };
        let urls = base_urls(&self.urls)?;
        let transport = match (self.transport, self.http) {
            (Some(transport), _) => transport,
            (_, Some(settings)) => http(settings, &urls)?,
            _ => http(defaults, &urls)?,
        };
        Ok(Client {
            shared: Arc::new(Shared {
                urls,
                current: AtomicUsize::new(0),
                warned: AtomicBool::new(false),
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

fn http(
    settings: impl Fn() -> reqwest::ClientBuilder,
    urls: &[String],
) -> Result<Box<dyn Transport>, Error> {
    let http = Http::new(settings, urls).map_err(|e| Error::Config(e.to_string()))?;
    Ok(Box::new(http))
}

/// Checks base URLs. An error has the position of one, and does not quote it: it may have a password.
fn base_urls(texts: &[String]) -> Result<Vec<String>, Error> {
    let texts = texts.iter().flat_map(|text| text.split(','));
    let mut urls = Vec::new();
    for text in texts.map(str::trim).filter(|text| !text.is_empty()) {
        let url = reqwest::Url::parse(text).ok().filter(is_base).ok_or_else(|| {
            Error::Config(format!(
                "base URL {} has to be http or https and a host, without user, query and fragment",
                urls.len() + 1
            ))
        })?;
        urls.push(url.as_str().trim_end_matches('/').to_string());
    }
    match urls.len() {
        0 => Err(Error::Config("a base URL is required".into())),
        _ => Ok(urls),
    }
}

fn is_base(url: &reqwest::Url) -> bool {
    let plain = url.username().is_empty() && url.password().is_none();
    let ends = url.query().is_none() && url.fragment().is_none();
    plain && ends && url.has_host() && matches!(url.scheme(), "http" | "https")
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").finish_non_exhaustive()
    }
}
