//! The node and lifecycle controllers at work together, on the embedded API and the simulated
//! cloud, in time that stands still unless a test lets it pass.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod deletion;
#[cfg(test)]
mod doubt;
#[cfg(test)]
mod fault_matrix;
#[cfg(test)]
mod hidden;
#[cfg(test)]
mod initialisation;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod labels;
#[cfg(test)]
mod newcomers;
#[cfg(test)]
mod projects;
#[cfg(test)]
mod promptness;
#[cfg(test)]
mod questions;
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
mod unasked;
#[cfg(test)]
mod unreadable;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod wishes;
