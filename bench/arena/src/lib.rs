//! Where cloudkeel and a CCM on the Go framework do the same work side by side: each on a control plane of
//! its own, with a cloud of its own that takes its time to answer, as a service account with a token.

mod account;
mod cloud;
mod contestant;
mod process;
mod scrape;
mod stage;
mod usage;

pub use cloud::Calls;
pub use contestant::{Contestant, Programs};
pub use process::Running;
pub use scrape::{Requests, requests};
pub use stage::Stage;
pub use usage::{of_process, of_servers, resident_kib};
