//! The provider conformance kit: what every cloud must do, as checks over any
//! [`CloudProvider`](cloudkeel_api::CloudProvider).
//!
//! An author writes two small things for a cloud: a [`Setup`] that makes fresh clouds, and an
//! [`Emulator`] that steers one of them and tells what is really in it ([`emulated`] has the half of it that is
//! the same for every cloud of `cloudkeel_emulation`). Then
//!
//! ```no_run
//! # async fn example(setup: impl cloudkeel_testkit::conformance::Setup) {
//! let report = cloudkeel_testkit::conformance::run(&setup).await;
//! println!("{report}");
//! assert!(report.is_clean(), "{report}");
//! # }
//! ```
//!
//! * Every check has a fresh cloud, a stable name and one of three ends: passed, failed with a reason, or
//!   a **gap**. A check that fails, panics or hangs does not stop the others.
//! * A gap is declared, never silent: by the provider ([`Features`](cloudkeel_api::Features), a missing
//!   capability), by [`Setup::gaps`], or by an emulator that [cannot play](Stop::CannotPlay) a part.
//!   The check runs all the same: a declared gap that works is a failure, because the declaration is stale.
//! * Call it under `#[tokio::test(start_paused = true)]` if the emulator takes tokio's time: thousands of
//!   retries and time-outs then take a second.
//!
//! [`SimulatedSetup`] is a complete example; `docs/write-a-provider.md` walks through it all.

mod balancers;
mod bench;
mod check;
pub mod emulated;
mod emulator;
mod instances;
mod page;
mod report;
mod routes;
mod run;
mod seen;
#[cfg(feature = "simulated-cloud")]
mod simulated;
mod wishes;

pub use emulator::{Calls, Emulator, Mark, Setup, Stop, Strike, Trouble};
pub use page::compare_with_page;
pub use report::{CheckResult, Report, Verdict};
pub use run::{names, run, run_some};
pub use seen::{SeenBalancer, SeenListener, SeenRoute, Thing};
#[cfg(feature = "simulated-cloud")]
pub use simulated::{Connecting, SimulatedSetup};
pub use wishes::cluster;
