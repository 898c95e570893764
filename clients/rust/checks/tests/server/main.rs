//! The client with a real server, which clients/with-server starts.

mod locks;
mod receiver;
mod runtimes;
mod streams;

use std::future::Future;
use std::time::{Duration, Instant};

use fencepost::Client;

/// A client of the server.
fn client() -> Client {
    let var = |name| std::env::var(name).expect("clients/with-server sets it");
    let builder = Client::builder().url(var("FENCEPOST_URL")).token(var("FENCEPOST_TOKEN"));
    // A server with TLS has a certificate of its own.
    let http = || reqwest::Client::builder().danger_accept_invalid_certs(true);
    builder.http(http).build().unwrap()
}

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Waits until a condition is true.
async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let begun = Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < secs(20.0), "not seen: {what}");
        tokio::time::sleep(secs(0.02)).await;
    }
}
