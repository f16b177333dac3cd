//! The route controller at work, on the embedded API and the simulated cloud, in time that
//! stands still unless a test lets it pass.

#[cfg(test)]
mod clouds;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod reconcile;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod schedule;
#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;
#[cfg(test)]
mod suspects;
