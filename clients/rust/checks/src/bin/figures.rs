//! Measures what the client costs its process, see test/contest/README.md.

use std::time::{Duration, Instant};

use fencepost::Client;
use rustix::time::{clock_gettime, ClockId};
use serde_json::Value;

type Error = Box<dyn std::error::Error>;

const LOCKS: usize = 1000;
const CYCLES: usize = 2000;
const BATCH: usize = 100; // of cycles; both sides take turns, so that they see the same machine
const WATCH: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (api, token) = (std::env::var("FENCEPOST_URL")?, std::env::var("FENCEPOST_TOKEN")?);
    let url = api.split(',').next().unwrap_or_default();
    let client = Client::new(url, &token)?;
    let ratio = ratio(&client, url, &token).await?;
    let before = resident();
    let mut all = Vec::new();
    for i in 0..LOCKS {
        all.push(client.try_lock(format!("figures:held:{i}")).await?);
    }
    let bytes = (resident() - before) / LOCKS as i64;
    let (begun, used) = (Instant::now(), cpu());
    tokio::time::sleep(WATCH).await;
    let percent = 100.0 * (cpu() - used).as_secs_f64() / begun.elapsed().as_secs_f64();
    for held in &all {
        held.check()?;
    }
    println!("held-cpu-percent {percent:.2}");
    println!("held-bytes {bytes}");
    println!("acquire-ratio {ratio:.2}");
    Ok(())
}

/// How much more processor time a cycle takes by the client than by `reqwest`.
async fn ratio(client: &Client, url: &str, token: &str) -> Result<f64, Error> {
    let http = reqwest::Client::new();
    let (mut by_client, mut bare) = (Duration::ZERO, Duration::ZERO);
    for i in 0..CYCLES / BATCH {
        let before = cpu();
        for _ in 0..BATCH {
            client.try_lock("figures:cycle").await?.release().await?;
        }
        let between = cpu();
        for n in 0..BATCH {
            bare_cycle(&http, url, token, i * BATCH + n).await?;
        }
        if i > 0 {
            // The first warms up.
            by_client += between - before;
            bare += cpu() - between;
        }
    }
    Ok(by_client.as_secs_f64() / bare.as_secs_f64())
}

/// Sends what the client sends.
async fn bare_cycle(http: &reqwest::Client, url: &str, token: &str, n: usize) -> Result<(), Error> {
    let url = format!("{url}/locks/figures:cycle");
    let key = format!("figures-{}-{n}", std::process::id());
    let post = http.post(&url).bearer_auth(token).header("Idempotency-Key", key);
    let post = post.header("Content-Type", "application/json").body(r#"{"ttl_seconds":30}"#);
    let entry: Value = serde_json::from_slice(&post.send().await?.bytes().await?)?;
    let lock_token = entry["token"].as_str().ok_or("no token")?;
    let delete = http.delete(&url).bearer_auth(token).header("Lock-Token", lock_token);
    delete.send().await?.bytes().await?;
    Ok(())
}

/// The processor time of this process.
fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// The bytes of memory that this process has.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<i64>().ok());
    kib.unwrap_or_default() * 1024
}
