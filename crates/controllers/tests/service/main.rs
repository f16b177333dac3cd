//! The service controller at work, on an API server in memory and the simulated cloud, in time that
//! stands still unless a test lets it pass.

#[cfg(test)]
mod api_server;
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
mod ownership;
#[cfg(test)]
mod removing;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod retrying;
#[cfg(test)]
mod services;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod strategic;
#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;
