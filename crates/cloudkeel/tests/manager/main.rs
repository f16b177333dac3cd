//! The binary as a process, on a real API server, with the simulated cloud.

mod cli;
mod failover;
mod harness;
mod nodes;
mod serving;
