//! Plays the cases of clients/vectors/http with axum.

use std::error::Error;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{to_bytes, Body};
use axum::http::{header::CONTENT_TYPE, request::Parts, Request};
use axum::{Extension, Router};
use fencepost::tower::{Fence, FenceLayer, FenceStore, Memory, StoreError};
use serde::Deserialize;
use serde_json::Value;
use tower::ServiceExt;

/// Explained in clients/vectors/http/README.md.
#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    fails: bool,
    resource: Option<String>,
    requests: Vec<Wanted>,
}

#[derive(Debug, Deserialize)]
struct Wanted {
    send: String,
    #[serde(default)]
    fence: Vec<String>,
    status: u16,
    handler: Option<u64>,
    code: Option<String>,
    presented: Option<u64>,
    known: Option<u64>,
}

#[tokio::test]
async fn the_layer_does_what_the_cases_say() -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string("../../vectors/http/fence.json")?;
    let cases: Vec<Case> = serde_json::from_str(&text)?;
    assert!(cases.len() >= 8);
    for case in cases {
        play(case).await?;
    }
    Ok(())
}

/// Routers may skip slashes, and clients escape what they like or send the host, too.
#[tokio::test]
async fn no_spelling_of_a_path_passes() -> Result<(), Box<dyn Error>> {
    let layer = FenceLayer::new(Memory::default());
    let app = service(Arc::default()).layer(layer);
    let put = |path: &str, fence: u64, status| Wanted {
        send: format!("PUT {path}"),
        fence: vec![fence.to_string()],
        status,
        handler: None,
        code: None,
        presented: None,
        known: None,
    };
    assert_eq!(send(&app, &put("/accounts/7", 9, 200)).await?.0, 200);
    let paths = ["/accounts/7/", "/accounts//7", "//accounts/7", "/%61ccounts/7"];
    for path in paths.iter().chain(&["http://service/accounts/7"]) {
        assert_eq!(send(&app, &put(path, 8, 409)).await?.0, 409, "{path}");
    }
    Ok(())
}

struct Store {
    memory: Memory,
    fails: bool,
}

impl FenceStore for Store {
    async fn raise(&self, resource: &str, fence: u64) -> Result<u64, StoreError> {
        if self.fails {
            return Err("the store does not answer".into());
        }
        self.memory.raise(resource, fence).await
    }
}

async fn play(case: Case) -> Result<(), Box<dyn Error>> {
    let ran = Arc::new(AtomicUsize::new(0));
    let stale = Arc::new(Mutex::new(Vec::new()));
    let refused = stale.clone();
    let mut layer = FenceLayer::new(Store { memory: Memory::default(), fails: case.fails })
        .on_stale(move |_, stale| refused.lock().unwrap().push((stale.presented, stale.known)));
    if case.optional {
        layer = layer.optional();
    }
    if case.resource.is_some() {
        layer = layer.resource(account);
    }
    let app = service(ran.clone()).layer(layer);
    for wanted in &case.requests {
        ran.store(0, Ordering::Relaxed);
        let (status, body) = send(&app, wanted).await?;
        let at = format!("{}: {wanted:?}: {status} {body}", case.name);
        assert!(status == wanted.status || case.fails && status > 500, "{at}");
        let runs = usize::from(wanted.status == 200);
        assert_eq!(ran.load(Ordering::Relaxed), runs, "{at}");
        check(wanted, &body, &at)?;
        let seen: Vec<_> = stale.lock().unwrap().drain(..).collect();
        let reports: Vec<_> = wanted.presented.zip(wanted.known).into_iter().collect();
        assert_eq!(seen, reports, "{at}");
    }
    Ok(())
}

fn service(ran: Arc<AtomicUsize>) -> Router {
    Router::new().fallback(move |fence: Option<Extension<Fence>>| async move {
        ran.fetch_add(1, Ordering::Relaxed);
        fence.map_or(0, |fence| fence.0 .0).to_string()
    })
}

fn account(parts: &Parts) -> Option<String> {
    Some(parts.uri.path().strip_prefix("/accounts/")?.split('/').next()?.to_owned())
}

/// Returns the status and the body. A problem has to say that it is one.
async fn send(app: &Router, wanted: &Wanted) -> Result<(u16, String), Box<dyn Error>> {
    let (method, path) = wanted.send.split_once(' ').ok_or("no method")?;
    let mut request = Request::builder().method(method).uri(path);
    for fence in &wanted.fence {
        request = request.header("Fence", fence);
    }
    let answer = app.clone().oneshot(request.body(Body::empty())?).await?;
    if wanted.code.is_some() {
        let problem = answer.headers().get(CONTENT_TYPE).ok_or("no type")?;
        assert_eq!(problem, "application/problem+json", "{wanted:?}");
    }
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), 1 << 20).await?;
    Ok((status, String::from_utf8(body.to_vec())?))
}

fn check(wanted: &Wanted, body: &str, at: &str) -> Result<(), Box<dyn Error>> {
    if let Some(fence) = wanted.handler {
        assert_eq!(body, fence.to_string(), "{at}");
    }
    if let Some(code) = &wanted.code {
        let problem: Value = serde_json::from_str(body)?;
        assert_eq!(problem["status"], wanted.status, "{at}");
        assert_eq!(problem["code"], code.as_str(), "{at}");
        assert_eq!(problem["fence_presented"].as_u64(), wanted.presented, "{at}");
        assert_eq!(problem["fence_known"].as_u64(), wanted.known, "{at}");
    }
    Ok(())
}
