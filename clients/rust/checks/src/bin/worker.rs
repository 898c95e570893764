//! The worker of test/contest in Rust.

use std::io::Read;
use std::time::Duration;

use fencepost::{Client, Held};
use serde_json::json;
use tokio::time::sleep;

struct Worker {
    client: Client,
    http: reqwest::Client,
    resource: String,
    ttl: f64,
}

enum Stop {
    Lost(String),
    Stale,
    Failed(String),
}

impl From<fencepost::Error> for Stop {
    fn from(error: fencepost::Error) -> Self {
        match error.is_lost() {
            true => Stop::Lost(error.to_string()),
            false => Stop::Failed(error.to_string()),
        }
    }
}

impl From<reqwest::Error> for Stop {
    fn from(error: reqwest::Error) -> Self {
        Stop::Failed(error.to_string())
    }
}

#[tokio::main]
async fn main() {
    let var = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let worker = Worker {
        client: Client::from_env().unwrap(),
        http: reqwest::Client::new(),
        resource: var("RESOURCE"),
        ttl: var("TTL").parse().unwrap(),
    };
    let locks = var("LOCKS");
    let locks: Vec<&str> = locks.split(',').collect();
    let (closed, input) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(closed);
    });
    tokio::select! {
        _ = input => {}
        _ = async { loop { worker.round(locks[below(locks.len() as f64) as usize]).await } } => {}
    }
    worker.client.close().await;
}

impl Worker {
    /// Adds one to what the resource has, under the lock.
    async fn round(&self, name: &str) {
        let ttl = Duration::from_secs_f64(self.ttl);
        let (mut fence, mut left) = (0, None);
        let done = match self.client.lock(name).ttl(ttl).wait(Duration::from_secs(20)).await {
            Ok(held) => {
                fence = held.fence();
                let done = match held.run(self.work(&held)).await {
                    Ok(done) => done,
                    Err(lost) => Err(lost.into()),
                };
                if done.is_err() {
                    left = Some(held.lease_left());
                }
                let _ = held.release().await;
                done
            }
            Err(error) => Err(error.into()),
        };
        let (outcome, detail) = match done {
            Ok(()) => ("written", String::new()),
            Err(Stop::Stale) => ("stale", "the resource knows a greater fence".into()),
            Err(Stop::Lost(why)) => ("lost", why),
            Err(Stop::Failed(why)) => ("failed", why),
        };
        let round = json!({"lock": name, "fence": fence, "outcome": outcome, "left": left, "detail": detail});
        println!("{round}");
        if outcome == "failed" {
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn work(&self, held: &Held) -> Result<(), Stop> {
        let url = format!("{}/{}?fence={}", self.resource, held.name(), held.fence());
        let text = self.http.get(&url).send().await?.text().await?;
        let value: u64 = text.trim().parse().map_err(|_| Stop::Failed(text))?;
        sleep(Duration::from_secs_f64(below(self.ttl / 2.0))).await;
        held.check()?;
        let put = self.http.put(format!("{url}&left={:.3}", held.lease_left()));
        let answer = put.body((value + 1).to_string()).send().await?;
        match answer.status().as_u16() {
            204 => Ok(()),
            409 => Err(Stop::Stale),
            status => Err(Stop::Failed(format!("the resource answers {status}"))),
        }
    }
}

/// A number from 0 to most, exclusive.
fn below(most: f64) -> f64 {
    let bits = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    (bits >> 11) as f64 / (1u64 << 53) as f64 * most
}
