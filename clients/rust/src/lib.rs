#![doc = include_str!("../README.md")]
// Without the seams, what they are made of is public for nothing.
#![cfg_attr(not(feature = "seams"), allow(unreachable_pub))]

mod acquire;
mod builder;
mod client;
mod clock;
mod errors;
mod events;
pub mod fencing;
mod held;
mod lead;
mod lease;
mod look;
mod pending;
mod queue;
mod request;
#[cfg(feature = "tower")]
pub mod tower;
mod transport;
mod types;
mod webhook;

pub use acquire::Acquire;
pub use builder::Builder;
pub use client::Client;
pub use errors::{Error, Lost, NoAnswer, Problem};
pub use events::Events;
pub use held::Held;
pub use lead::{Campaign, Term};
pub use look::List;
pub use pending::{Claimed, Pending};
pub use types::{
    Claim, Event, EventData, EventEntry, Holder, Lock, LockSummary, ReleaseRequested, Waiter,
};
pub use webhook::verify_webhook;

/// How tests take the place of servers and clocks. Not part of the interface of the crate.
#[cfg(feature = "seams")]
#[doc(hidden)]
pub mod seams {
    pub use crate::clock::{Clock, Reading};
    pub use crate::transport::{Body, BoxFuture, Cause, Request, Response, Transport};
    pub use crate::webhook::verify_at;
}
