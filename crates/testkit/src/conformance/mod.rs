//! The provider conformance kit: what every cloud must do, as checks over any
//! [`CloudProvider`](cloudkeel_api::CloudProvider).
//!
//! An author writes an adapter: an [`Adapter`] that makes fresh clouds, mostly by [`adapter()`], and a [`TestCloud`] that changes one of them behind
//! the provider's back and says what is really in it. Then
//!
//! ```no_run
//! # async fn example(adapter: impl cloudkeel_testkit::conformance::Adapter) {
//! let report = cloudkeel_testkit::conformance::run(&adapter).await;
//! let documented = cloudkeel_testkit::conformance::verify(&report, env!("CARGO_MANIFEST_DIR"));
//! documented.unwrap_or_else(|why| panic!("{why}"));
//! # }
//! ```
//!
//! * Every check has a fresh cloud, a stable name and one of three verdicts: passed, failed with a reason, or
//!   a **gap**. A check that fails, panics or hangs does not stop the others.
//! * The [mandatory] checks are those of instances that every cloud can play. Every other gap is declared by the adapter with
//!   a reason ([`Adapter::gaps`]). A check that is skipped without such a declaration fails. A declared check runs all the
//!   same: if it passes, the declaration is stale, and that is a failure.
//! * The software behind an adapter need not be ours. State is changed by the vendor's own API or a control hook; calls are
//!   counted and faults are played by a [`FaultInjector`]: the emulated cloud, or an interposer in process or as a proxy.
//!   [`InterposedAdapter`] is the frame of such an adapter.
//! * Call [`run`] under `#[tokio::test(start_paused = true)]` if the cloud takes tokio's time: thousands of
//!   retries and time-outs then take a second. Real connections work under a paused clock too, by the transport of an
//!   [`Interposed`]. A cloud that needs the real clock sets [`Adapter::concurrency`] and [`Adapter::timeout`].
//!
//! # What an adapter brings
//!
//! | part | for which checks | if it is left out |
//! |---|---|---|
//! | [`TestCloud::connect`] and [`interposer`](TestCloud::interposer) | all | – |
//! | [`change`](TestCloud::change) with [`Change::AddInstance`], `DestroyInstance`, `SwitchOff`; [`state`](TestCloud::state) with instances | the mandatory ones | – |
//! | `change` with other [`Change`]s | tombstones, ownership, drift, quotas, slow jobs | gaps |
//! | `state` with balancers, routes, volumes | those capabilities | gaps |
//! | [`samples`](TestCloud::samples) | credentials that must not be shown, pages, sizes, addresses, annotations, shared balancers | gaps |
//! | [`FaultInjector::inject`] with 401, 403, 429, 500, no answer, an unreadable answer | the mandatory ones | – |
//! | `inject` with other [`CommonFault`]s | lost answers, wrong lists, stale reads, slow answers, another account | gaps |
//!
//! [`SimulatedAdapter`] and `providers/hetzner/tests/conformance` are complete examples; `docs/write-a-provider.md` leads
//! through it all. A provider with two sources of instances, such as cloud servers and dedicated ones, has a second adapter
//! for [`run_instances`].

mod actual;
mod adapter;
mod background;
mod balancers;
mod cancelled;
mod check;
mod cloud;
mod credentials;
mod desired;
mod emulated;
mod env;
mod fault;
mod instances;
mod interposed;
mod logs;
mod page;
mod report;
mod routes;
mod run;
mod secret_forms;
#[cfg(feature = "simulated-cloud")]
mod simulated;
mod volumes;
mod webhooks;

pub use actual::{
    ActualBalancer, ActualInstance, ActualListener, ActualRoute, ActualState, ActualVolume,
    Resource, health_check, labels_of_tags, networks,
};
pub use adapter::{
    Adapter, Change, OrNotPlayable, OwnerLabels, Samples, Share, Stop, TestCloud, adapter,
};
pub use cloudkeel_emulation::{
    Answer, CommonFault, FaultInjector, FaultMatch, ListShape, interposer,
};
pub use desired::cluster;
pub use emulated::{EmulatedCloud, under};
pub use fault::ELSEWHERE;
pub use interposed::{Interposed, InterposedAdapter, Opening};
pub use page::{compare_mutants_with_page, compare_with_page, verify};
pub use report::{CheckResult, Report, Verdict};
pub use run::{mandatory, names, run, run_instances, run_some};
#[cfg(feature = "simulated-cloud")]
pub use simulated::{Connecting, SimulatedAdapter};
