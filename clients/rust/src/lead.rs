use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{Acquire, Target};
use crate::client::Client;
use crate::errors::Error;
use crate::held::Held;
use crate::lease::Lease;
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

/// The time of one leader. It does not keep the lock: that ends with the campaign.
#[derive(Clone)]
pub struct Term(Arc<Lease>);

impl Term {
    /// Fence of the lock. It grows from each leader to the next: a resource that compares it rejects
    /// writes of earlier leaders.
    pub fn fence(&self) -> u64 {
        self.0.fence()
    }

    /// The time until the work has to stop, as of [`Held::left`].
    pub fn left(&self) -> Duration {
        self.0.left()
    }

    /// Returns while this process is the leader, and otherwise an error, as [`Held::check`] does.
    pub fn check(&self) -> Result<(), Error> {
        self.0.check()
    }

    /// Waits until this process is not the leader any more, and returns why.
    pub async fn lost(&self) -> Error {
        self.0.lost().await
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term").field("fence", &self.fence()).finish_non_exhaustive()
    }
}

impl Acquire<Campaign> {
    /// Runs work while this process is the leader, with its [`Term`]. When the lock is lost, the work
    /// is dropped, and the campaign goes on. When the work is done, the leader resigns, and its
    /// output is returned.
    ///
    /// The campaign lasts until its future is dropped or the client is closed, also while no server
    /// answers. Other errors of the acquire, such as `forbidden`, end it.
    pub async fn run<F, W>(self, mut work: F) -> Result<W::Output, Error>
    where
        F: FnMut(Term) -> W,
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
            self.client.shared.pause(backoff(pauses)).await?;
            pauses += 1;
        }
    }
}

/// Runs the work for one term. The error says that the lock was lost.
async fn term<W: Future>(held: Held, work: &mut impl FnMut(Term) -> W) -> Result<W::Output, Error> {
    let output = held.run(work(Term(held.lease.clone()))).await?;
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
