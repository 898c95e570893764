//! How requests are sent: by `reqwest`, or by a script in tests.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue, RETRY_AFTER};

/// A future that a trait object returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why there is no response.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A request to one server. Its headers are secrets: it has no output.
#[allow(missing_debug_implementations)]
pub struct Request {
    /// HTTP method.
    pub method: &'static str,
    /// Whole URL.
    pub url: String,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// JSON, or nothing.
    pub body: Option<Vec<u8>>,
}

/// The head of a response, and what reads its body.
#[allow(missing_debug_implementations)]
pub struct Response {
    /// Status.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// Reads the body.
    pub body: Box<dyn Body>,
}

/// The body of a response, in pieces.
pub trait Body: Send {
    /// The next piece; `None` at the end.
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Cause>>;
}

/// Sends requests. A future that is dropped closes its request.
pub trait Transport: Send + Sync {
    /// Sends a request. It returns when the head of the response is there. An error says why there
    /// is no response; it names neither URLs nor headers.
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Cause>>;
}

/// Sends requests by `reqwest`.
pub(crate) struct Http {
    outside: reqwest::Client,
    loopback: reqwest::Client, // which no proxy reaches
}

impl Http {
    /// Uses HTTP/1.1 alone: requests that wait would fill the streams of an HTTP/2 connection, and
    /// renewals would wait behind them. It follows no redirects, which would carry the lock's token
    /// to another server.
    pub(crate) fn new(
        builder: impl Fn() -> reqwest::ClientBuilder,
        urls: &[String],
    ) -> reqwest::Result<Http> {
        let builder = || builder().http1_only().redirect(reqwest::redirect::Policy::none());
        let loopback = builder().no_proxy().build()?;
        let outside = if urls.iter().all(|url| is_loopback(url)) {
            loopback.clone()
        } else {
            builder().build()?
        };
        Ok(Http { outside, loopback })
    }
}

/// The settings of the HTTP library by default.
pub(crate) fn defaults() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .tcp_keepalive(Duration::from_secs(15))
}

fn is_loopback(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or_default();
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    let ip = host.parse::<IpAddr>();
    ip.map_or(host == "localhost", |ip| ip.to_canonical().is_loopback())
}

impl Transport for Http {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, Cause>> {
        Box::pin(async move {
            let client = if is_loopback(&request.url) { &self.loopback } else { &self.outside };
            let method = request.method.parse().unwrap_or_default();
            let mut builder = client.request(method, request.url);
            for (name, value) in request.headers {
                let mut value = HeaderValue::try_from(value)?;
                value.set_sensitive(matches!(name, "authorization" | "lock-token"));
                builder = builder.header(HeaderName::from_static(name), value);
            }
            if let Some(body) = request.body {
                builder = builder.body(body);
            }
            let response = builder.send().await.map_err(cause)?;
            let retry_after = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok());
            Ok(Response {
                status: response.status().as_u16(),
                retry_after: retry_after.map(String::from),
                body: Box::new(response),
            })
        })
    }
}

impl Body for reqwest::Response {
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Cause>> {
        let chunk = reqwest::Response::chunk(self);
        Box::pin(async { Ok(chunk.await.map_err(cause)?.map(|bytes| bytes.to_vec())) })
    }
}

/// A URL may hold a secret of a proxy, so it is cut.
fn cause(error: reqwest::Error) -> Cause {
    error.without_url().into()
}
