//! The node and lifecycle controllers at work together, on the embedded API and the simulated
//! cloud, in time that stands still unless a test lets it pass.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod annotations;
#[cfg(test)]
mod cloud_calls;
#[cfg(test)]
mod deletion;
#[cfg(test)]
mod doubt;
#[cfg(test)]
mod fault_matrix;
#[cfg(test)]
mod hidden_zone;
#[cfg(test)]
mod initialisation;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod labels;
#[cfg(test)]
mod late_instances;
#[cfg(test)]
mod matchers;
#[cfg(test)]
mod projects;
#[cfg(test)]
mod promptness;
#[cfg(test)]
mod recreated;
#[cfg(test)]
mod refresh;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod summaries;
#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;
#[cfg(test)]
mod unconfigured_servers;
#[cfg(test)]
mod unreadable_provider_id;
#[cfg(test)]
mod waiting;
