//! The service controller at work, on the embedded API and the simulated cloud, in time that
//! stands still unless a test lets it pass.

#[cfg(test)]
mod ensuring;
#[cfg(test)]
mod following;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod looking;
#[cfg(test)]
mod model;
#[cfg(test)]
mod never_had;
#[cfg(test)]
mod ownership;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod removing;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod retrying;
#[cfg(test)]
mod sharing;
#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;
#[cfg(test)]
mod teardown;
