//! Elections in memory, on a paused clock.

mod cluster;
mod link;
mod scenarios;
mod simulation;
mod support;
