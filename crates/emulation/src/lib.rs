//! What every emulated cloud has, whatever its API is: one door for all calls, with a log, faults by
//! script, rate limits and latency; things with a past, so that reads can lag behind; a way in without
//! sockets; and a second API to steer it from another process.
//!
//! A cloud brings what is its own and implements [`Emulated`]:
//!
//! | what | how |
//! |---|---|
//! | its calls | [`operations!`] writes the enum: name, method and path of each, once |
//! | its ways of saying no | [`faults!`] writes the enum: its own faults, and those that every cloud has |
//! | its state | a lock around it, with a [`Door`], [`Tokens`] and settings inside |
//! | who may call, and how often | [`Emulated::admit`], with [`Buckets`](rate_limit::Buckets) |
//! | what a call does | [`Emulated::perform`], a plain function over the state |
//!
//! and gets [`api_router`], [`control_router`], [`Faults`], [`CallCounts`] and [`InProcess`] for it;
//! [`handles!`] writes what its tests turn. `tests/toy` is the smallest cloud there can be.
//!
//! Time is tokio's, so a paused runtime owns it. Nothing is random but what follows from a seed.

mod answer;
mod behaviour;
mod calls;
mod cloud;
mod control;
mod door;
mod fault;
pub mod go_duration;
mod handles;
pub mod history;
mod operation;
pub mod rate_limit;
mod script;
mod serve;
pub mod serving;
mod tokens;
mod transport;

pub use self::answer::Answer;
pub use self::behaviour::{Behaviour, Consistency, Latency, RateLimit};
pub use self::calls::{CallCounts, CallLog, CallOutcome, LoggedCall};
pub use self::cloud::{Admitted, Arrival, Complaint, Emulated, Steerable};
pub use self::control::{Steer, Steering, control_router};
pub use self::door::{Door, beside_the_door};
pub use self::fault::{FaultMatch, FaultRule, FaultScript, ListFault, Mishap, ScriptedFault};
pub use self::operation::ApiOperation;
pub use self::script::Faults;
pub use self::serve::{Served, api_router};
pub use self::tokens::{Denied, Grant, Permission, Tokens, bearer_of};
pub use self::transport::InProcess;
