//! Refuses requests of a holder whose lock a later one has acquired: a layer for axum and other
//! services of tower. The holder sends its fence with each request; the layer keeps the greatest
//! one of each resource.
//!
//! ```
//! # use fencepost::tower::{FenceLayer, FenceStore};
//! # fn app<S: FenceStore>(store: S) {
//! let layer = FenceLayer::new(store).resource(|parts| {
//!     let id = parts.uri.path().strip_prefix("/accounts/")?.split('/').next()?;
//!     Some(format!("account:{id}"))
//! });
//! # }
//! ```
//!
//! A request can still be overtaken between the check and what its handler writes. The extension
//! [`Fence`] gives the handler the fence: compare it again in the transaction that writes.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{json, Value};
use tower_layer::Layer;
use tower_service::Service;

use crate::transport::BoxFuture;

const MAX: u64 = (1 << 53) - 1;

/// Why a store could not raise a fence.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// Keeps the greatest fence of each resource, at least as durable as the data.
pub trait FenceStore: Send + Sync + 'static {
    /// Stores the fence if it is greater than that of the resource, and returns the greatest. It is
    /// atomic. If it fails, the handler does not run.
    fn raise(
        &self,
        resource: &str,
        fence: u64,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;
}

/// A store for tests, and for a single process whose data does not outlive it. It loses all fences
/// at a restart, knows none of other processes, and grows with the number of resources.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<String, u64>>);

impl FenceStore for Memory {
    async fn raise(&self, resource: &str, fence: u64) -> Result<u64, StoreError> {
        let mut fences = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = fences.entry(resource.to_owned()).or_default();
        *known = fence.max(*known);
        Ok(*known)
    }
}

/// The fence of a request that the layer let pass, in its extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence(pub u64);

/// What the layer refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stale {
    /// The resource of the request.
    pub resource: String,
    /// The fence of the request.
    pub presented: u64,
    /// The fence that a later holder has sent.
    pub known: u64,
}

type Resource = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type OnStale = dyn Fn(&Parts, Stale) + Send + Sync;

/// Checks the fence of requests before a service handles them.
pub struct FenceLayer<F> {
    store: Arc<F>,
    resource: Arc<Resource>,
    optional: bool,
    on_stale: Arc<OnStale>,
}

impl<F: FenceStore> FenceLayer<F> {
    /// A layer whose resource is the unescaped path, without repeated slashes and one at its end,
    /// and that needs a fence for all requests but `GET`, `HEAD` and `OPTIONS`. Name the resource
    /// yourself where a router ignores case, two routes write the same, or the service is nested.
    pub fn new(store: F) -> Self {
        Self {
            store: Arc::new(store),
            resource: Arc::new(|parts| Some(path_of(parts))),
            optional: false,
            on_stale: Arc::new(|_, _| ()),
        }
    }

    /// What a request reads or writes, or `None` for what the layer does not check. All paths to
    /// what one lock protects need the same resource.
    #[must_use]
    pub fn resource(
        mut self,
        resource: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.resource = Arc::new(resource);
        self
    }

    /// Lets writes without a fence pass.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Called before a stale request is answered: spawn a task that reports it.
    #[must_use]
    pub fn on_stale(mut self, on_stale: impl Fn(&Parts, Stale) + Send + Sync + 'static) -> Self {
        self.on_stale = Arc::new(on_stale);
        self
    }

    async fn check(&self, parts: &Parts) -> Result<Option<Fence>, Refusal> {
        let Some(resource) = (self.resource)(parts).filter(|resource| !resource.is_empty()) else {
            return Ok(None);
        };
        let safe = [Method::GET, Method::HEAD, Method::OPTIONS].contains(&parts.method);
        let mut values = parts.headers.get_all("fence").iter();
        let presented = match (values.next(), values.next()) {
            (None, _) if safe || self.optional => return Ok(None),
            (None, _) => return Err(Refusal::required()),
            (Some(value), None) => parse(value).ok_or_else(Refusal::invalid)?,
            _ => return Err(Refusal::invalid()),
        };
        let known = self.store.raise(&resource, presented).await.map_err(|error| {
            log::error!("the fence cannot be compared: {error}");
            Refusal::unavailable()
        })?;
        if known > presented {
            (self.on_stale)(parts, Stale { resource, presented, known });
            return Err(Refusal::stale(presented, known));
        }
        Ok(Some(Fence(presented)))
    }
}

/// Reads a positive integer below 2^53, written in one way only.
fn parse(value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?;
    let fence: u64 = text.parse().ok()?;
    ((1..=MAX).contains(&fence) && fence.to_string() == text).then_some(fence)
}

/// The path in one spelling: routers may skip slashes.
fn path_of(parts: &Parts) -> String {
    let path = unescaped(parts.uri.path());
    let names: Vec<_> = path.split('/').filter(|name| !name.is_empty()).collect();
    format!("/{}", names.join("/"))
}

/// Clients escape the same path differently.
fn unescaped(path: &str) -> String {
    let mut parts = path.split('%');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).map(|digits| u8::from_str_radix(digits, 16)) {
            Some(Ok(byte)) => {
                out.push(byte);
                out.extend_from_slice(&part.as_bytes()[2..]);
            }
            _ => out.extend_from_slice(format!("%{part}").as_bytes()),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl<F> Clone for FenceLayer<F> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            resource: self.resource.clone(),
            optional: self.optional,
            on_stale: self.on_stale.clone(),
        }
    }
}

impl<F> fmt::Debug for FenceLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceLayer").field("optional", &self.optional).finish_non_exhaustive()
    }
}

impl<F, S> Layer<S> for FenceLayer<F> {
    type Service = Fenced<F, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Fenced { layer: self.clone(), inner }
    }
}

/// A service behind a [`FenceLayer`].
#[derive(Debug)]
pub struct Fenced<F, S> {
    layer: FenceLayer<F>,
    inner: S,
}

impl<F, S: Clone> Clone for Fenced<F, S> {
    fn clone(&self) -> Self {
        Self { layer: self.layer.clone(), inner: self.inner.clone() }
    }
}

impl<F, S, B, C> Service<Request<B>> for Fenced<F, S>
where
    F: FenceStore,
    S: Service<Request<B>, Response = Response<C>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    C: From<String>,
{
    type Response = Response<C>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let next = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, next);
        let layer = self.layer.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            match layer.check(&parts).await {
                Ok(fence) => {
                    fence.map(|fence| parts.extensions.insert(fence));
                    ready.call(Request::from_parts(parts, body)).await
                }
                Err(refusal) => Ok(refusal.response()),
            }
        })
    }
}

/// An answer without the handler: a problem by RFC 9457.
struct Refusal {
    status: StatusCode,
    problem: Value,
}

impl Refusal {
    fn new(status: StatusCode, code: &str, detail: &str) -> Self {
        let title = status.canonical_reason();
        let problem =
            json!({"title": title, "status": status.as_u16(), "detail": detail, "code": code});
        Self { status, problem }
    }

    fn required() -> Self {
        let detail = "A write needs the header Fence: the fence of the lock that its client holds.";
        Self::new(StatusCode::PRECONDITION_REQUIRED, "fence_required", detail)
    }

    fn invalid() -> Self {
        let detail = "The header Fence is one positive integer below 2^53.";
        Self::new(StatusCode::BAD_REQUEST, "invalid_fence", detail)
    }

    fn unavailable() -> Self {
        let detail = "The service cannot compare the fence now. The request has no effect.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "fence_unavailable", detail)
    }

    fn stale(presented: u64, known: u64) -> Self {
        let detail = format!(
            "The request has the fence {presented}, and a later holder has sent {known}. \
             The client does not hold the lock."
        );
        let mut refusal = Self::new(StatusCode::CONFLICT, "stale_fence", &detail);
        refusal.problem["fence_presented"] = presented.into();
        refusal.problem["fence_known"] = known.into();
        refusal
    }

    fn response<C: From<String>>(self) -> Response<C> {
        let mut response = Response::new(self.problem.to_string().into());
        *response.status_mut() = self.status;
        let problem = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, problem);
        response
    }
}
