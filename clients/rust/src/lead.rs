use std::fmt;
use std::future::Future;

use tokio::time::sleep;

use crate::acquire::{Acquire, Target};
use crate::client::Client;
use crate::errors::Error;
use crate::held::Held;
use crate::queue::Queued;
use crate::request::backoff;

impl Client {
    /// Campaigns for a lock with the work of [`Acquire::run`].
    pub fn lead(&self, name: impl Into<String>) -> Acquire<Campaign> {
        Acquire::new(self, Target::of(name.into()))
    }
}

/// What [`Client::lead`] begins: a campaign for leadership.
pub struct Campaign(());

impl fmt::Debug for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Campaign")
    }
}

impl Acquire<Campaign> {
    /// Runs work while this process is the leader, with its term. The term is the fence: it grows
    /// from each leader to the next, and a resource that compares it rejects writes of earlier
    /// leaders. When the lock is lost, the work is dropped, and the campaign goes on. When the work
    /// is done, the leader resigns, and its output is returned.
    ///
    /// The campaign lasts until its future is dropped, also while no server answers. Other errors of
    /// the acquire, such as `forbidden`, end it.
    pub async fn run<F, W>(self, mut work: F) -> Result<W::Output, Error>
    where
        F: FnMut(u64) -> W,
        W: Future,
    {
        let mut pauses = 0;
        loop {
            match Queued::new(self.clone())?.take().await {
                Ok(held) => {
                    pauses = 0;
                    if let Ok(output) = term(held, &mut work).await {
                        return Ok(output);
                    }
                }
                Err(error) if !passes(&error) => return Err(error),
                Err(_) => {}
            }
            sleep(backoff(pauses)).await;
            pauses += 1;
        }
    }
}

/// Runs the work for one term. The error says that the lock was lost.
async fn term<W: Future>(held: Held, work: &mut impl FnMut(u64) -> W) -> Result<W::Output, Error> {
    let output = held.run(work(held.fence())).await?;
    let _ = held.release().await; // logged
    Ok(output)
}

/// Whether a later acquire may succeed.
fn passes(error: &Error) -> bool {
    match error {
        Error::Refused(problem) => matches!(problem.status, 423 | 429 | 500..),
        Error::Lost(_) | Error::NoAnswer(_) => true,
        _ => false,
    }
}
