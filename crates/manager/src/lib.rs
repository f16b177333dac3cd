//! What operators deploy: everything around the controllers.
//!
//! Each module is one idea: [`election`] decides which replica writes, [`serving`] answers probes, scrapes and users.

mod background;
pub mod client;
pub mod commands;
pub mod config;
pub mod diagnose;
pub mod dry_run;
pub mod election;
pub mod flags;
pub mod health;
mod log_messages;
pub mod logging;
pub mod metrics;
pub mod options;
mod orphans;
mod page;
mod panics;
pub mod reference;
mod reload;
pub mod run;
pub mod serving;
#[cfg(test)]
mod testing;
mod unavailable;
mod volume_labels;
mod webhook_certificate;
