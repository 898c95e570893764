//! Compares the fence of a holder in the transaction that writes, in PostgreSQL, MySQL, MariaDB and
//! SQLite. The tables are in fencekit. Rust has no common interface of databases, so the caller runs
//! the statements. With sqlx:
//!
//! ```text
//! let guard = SqlGuard::new(held.name(), held.fence(), "accounts");
//! let known: i64 = sqlx::query_scalar(RAISE) // before the transaction reads or writes anything else
//!     .bind(guard.lock()).bind(guard.fence()).fetch_one(&mut *tx).await?;
//! guard.check(known)?; // an error: roll back
//! ```
//!
//! After the transaction, report a [`StaleFence`] to operators.

use std::fmt;

use crate::{Client, Error};

/// Raises the fence of a lock, and returns the greatest. Its parameters are the lock and the fence.
/// For PostgreSQL and SQLite.
pub const RAISE: &str = "INSERT INTO fences (name, fence) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE
SET fence = CASE WHEN fences.fence < excluded.fence THEN excluded.fence ELSE fences.fence END
RETURNING fence";

/// Raises the fence of a lock in MySQL and MariaDB. Its parameters are the lock, the fence, and the
/// fence again. [`RAISED_MYSQL`] follows.
pub const RAISE_MYSQL: &str = "INSERT INTO fences (name, fence) VALUES (?, ?)
ON DUPLICATE KEY UPDATE fence = GREATEST(fence, ? + 0)";

/// Returns the greatest fence of a lock in MySQL and MariaDB. Its parameter is the lock.
pub const RAISED_MYSQL: &str = "SELECT fence FROM fences WHERE name = ? FOR UPDATE";

/// Compares the fence of a grant with the greatest that a database has seen.
#[derive(Clone, Debug)]
pub struct SqlGuard {
    lock: String,
    fence: i64,
    resource: String,
}

impl SqlGuard {
    /// Returns a guard. The resource is what the lock protects, for reports. It is no secret.
    pub fn new(lock: &str, fence: u64, resource: &str) -> SqlGuard {
        let fence = fence.min(i64::MAX as u64) as i64; // fences are below 2^53
        SqlGuard { lock: lock.into(), fence, resource: resource.into() }
    }

    /// The name of the lock, and of its row in the table of fences.
    pub fn lock(&self) -> &str {
        &self.lock
    }

    /// The fence of the grant, as databases have it.
    pub fn fence(&self) -> i64 {
        self.fence
    }

    /// Compares what [`RAISE`] or [`RAISED_MYSQL`] returned; or a fence in a row of your own, if a
    /// conditional `UPDATE` affected no row.
    ///
    /// # Errors
    ///
    /// If it is greater than that of the guard, a later holder was here: roll back.
    pub fn check(&self, known: i64) -> Result<(), StaleFence> {
        if known <= self.fence {
            return Ok(());
        }
        Err(StaleFence {
            lock: self.lock.clone(),
            presented: self.fence,
            known,
            resource: self.resource.clone(),
        })
    }
}

/// A later holder of the lock has written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaleFence {
    /// Name of the lock.
    pub lock: String,
    /// Fence of the refused holder.
    pub presented: i64,
    /// Greatest fence that the database has seen.
    pub known: i64,
    /// What the lock protects.
    pub resource: String,
}

impl StaleFence {
    /// Shows the refused write to operators. Call it after the transaction: the client retries.
    ///
    /// # Errors
    ///
    /// As of [`Client::stale_write`].
    pub async fn report(&self, client: &Client) -> Result<(), Error> {
        let (presented, known) = (self.presented as u64, self.known as u64);
        client.stale_write(&self.lock, presented, known, &self.resource).await
    }
}

impl fmt::Display for StaleFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StaleFence { lock, presented, known, .. } = self;
        write!(f, "the fence {presented} of {lock} is stale: {known} has written")
    }
}

impl std::error::Error for StaleFence {}
