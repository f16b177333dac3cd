//! The service controller at work, on the embedded API and the simulated cloud, in time that
//! stands still unless a test lets it pass.

#[cfg(test)]
mod absence;
#[cfg(test)]
mod conditions;
#[cfg(test)]
mod delete;
#[cfg(test)]
mod drift;
#[cfg(test)]
mod ensure;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod model;
#[cfg(test)]
mod ownership;
#[cfg(test)]
mod panics;
#[cfg(test)]
mod pause;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod retain;
#[cfg(test)]
mod retry;
#[cfg(test)]
mod sharing;
#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;
#[cfg(test)]
mod targets;
#[cfg(test)]
mod teardown;
#[cfg(test)]
mod tenants;
