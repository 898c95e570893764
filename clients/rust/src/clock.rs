//! The clocks by which a lease counts.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What the clocks show at an instant, each since an origin of its own.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Stands still while the machine is suspended, on Linux.
    pub monotonic: Duration,
    /// Like `monotonic`, and passes while the machine is suspended; `None` where there is none.
    pub boot: Option<Duration>,
    /// May be set, forward and back.
    pub wall: Duration,
}

impl Reading {
    /// How much time passed since an earlier reading. Of two clocks it believes the one by which
    /// more time passed: a lock that ends too early costs a retry, one that ends too late costs
    /// data. Without a boot clock the wall clock shows a suspension, so a wall clock that is set
    /// forward ends locks early.
    pub fn since(&self, earlier: &Reading) -> Duration {
        let other = match (self.boot, earlier.boot) {
            (Some(now), Some(then)) => now.saturating_sub(then),
            _ => self.wall.saturating_sub(earlier.wall),
        };
        other.max(self.monotonic.saturating_sub(earlier.monotonic))
    }
}

/// Reads all clocks.
pub trait Clock: Send + Sync {
    /// Reads all clocks.
    fn read(&self) -> Reading;
}

/// The clocks of the machine. Monotonic readings count from `start`.
pub(crate) struct Machine {
    pub(crate) start: Instant,
}

impl Clock for Machine {
    fn read(&self) -> Reading {
        Reading {
            monotonic: self.start.elapsed(),
            boot: since_boot(),
            wall: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }
}

#[cfg(target_os = "linux")]
fn since_boot() -> Option<Duration> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(now).ok()
}

#[cfg(not(target_os = "linux"))]
fn since_boot() -> Option<Duration> {
    None
}
