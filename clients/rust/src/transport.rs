//! How requests are sent: by `reqwest`, or by a script in tests.

use std::error::Error as _;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue, RETRY_AFTER};

/// A future that a trait object returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

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
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>>;
}

/// Sends requests. A future that is dropped closes its request.
pub trait Transport: Send + Sync {
    /// Sends a request. It returns when the head of the response is there. An error says why there
    /// is no response; it names neither URLs nor headers.
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, String>>;
}

/// The client that sends requests by default. It follows no redirects, which would carry the lock's
/// token to another server.
pub(crate) fn http() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .tcp_keepalive(Duration::from_secs(15))
        .build()
}

impl Transport for reqwest::Client {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, String>> {
        Box::pin(async move {
            let method = request.method.parse().unwrap_or_default();
            let mut builder = self.request(method, request.url);
            for (name, value) in request.headers {
                let mut value = HeaderValue::try_from(value).map_err(|e| format!("{name}: {e}"))?;
                value.set_sensitive(matches!(name, "authorization" | "lock-token"));
                builder = builder.header(HeaderName::from_static(name), value);
            }
            if let Some(body) = request.body {
                builder = builder.body(body);
            }
            let response = builder.send().await.map_err(text)?;
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
    fn chunk(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>> {
        let chunk = reqwest::Response::chunk(self);
        Box::pin(async { Ok(chunk.await.map_err(text)?.map(|bytes| bytes.to_vec())) })
    }
}

/// What a failed request says, with its causes. A URL may hold a secret of a proxy, so it is cut.
fn text(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(e) = cause {
        text = format!("{text}: {e}");
        cause = e.source();
    }
    text
}
