//! What every emulated cloud has, whatever its API is: one gateway for all calls, with a log, faults by script, rate
//! limits and latency; tables with a past, so that reads can lag behind; lists, jobs and locks; a transport without
//! sockets; and a second API to control it from another process.
//!
//! A cloud brings what is its own and implements [`Emulated`]:
//!
//! | what | how |
//! |---|---|
//! | its calls | [`operations!`] writes the enum: name, method and path or command of each, once |
//! | its refusals | [`faults!`] writes the enum: its own faults, and those that every cloud has |
//! | its state | a lock around [`Table`](history::Table)s, with a [`Gateway`], [`Tokens`] and settings inside |
//! | its lists | a [`ListApi`](list::ListApi) says which parameters filter, sort and cut into pages |
//! | its slow work | [`Jobs`](jobs::Jobs) run, fail, and lock what they change |
//! | who may call, and how often | [`Emulated::admit`], with [`Buckets`](rate_limit::Buckets) or [`Logins`] |
//! | what a call does | [`Emulated::perform`], a plain function over the state |
//!
//! and gets [`api_router`], [`control_router`], [`Faults`], [`CallCounts`] and [`InProcess`] for it;
//! [`control_methods!`] writes what its tests call. `tests/toy` is the smallest cloud there can be.
//!
//! A cloud that is real software has an [`interposer`] in front of it.
//!
//! Time is tokio's, so a paused runtime owns it. Nothing is random but what follows from a seed.

mod answer;
mod calls;
mod clock;
mod cloud;
mod control;
mod control_methods;
mod fault;
mod gateway;
pub mod go_duration;
pub mod history;
pub mod ids;
mod injector;
pub mod interposer;
pub mod jobs;
pub mod list;
mod list_shape;
mod operation;
pub mod params;
pub mod rate_limit;
mod script;
pub mod selector;
mod serve;
pub mod serving;
mod settings;
mod tokens;
mod transport;
pub mod xml;

pub use self::answer::Answer;
pub use self::calls::{CallCounts, CallLog, CallOutcome, LoggedCall};
pub use self::clock::EmulatedClock;
pub use self::cloud::{Admission, Call, Controllable, Emulated, RequestError};
pub use self::control::{ControlOperation, ControlRequest, ControlResult, control_router, shown};
pub use self::fault::{CommonFault, FaultMatch, FaultRule, FaultScript, ScriptedFault};
pub use self::gateway::{Gateway, uncounted_response};
pub use self::injector::{CallTotals, FaultInjector, FaultTiming};
pub use self::list_shape::{ListFault, ListShape};
pub use self::operation::{ApiOperation, reads_by_name};
pub use self::script::Faults;
pub use self::serve::{Served, api_router};
pub use self::settings::{Consistency, GatewaySettings, Latency, RateLimit};
pub use self::tokens::{Denied, Grant, Logins, Permission, Tokens, basic_of, bearer_of};
pub use self::transport::InProcess;
