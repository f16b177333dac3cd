//! Elections in memory, on a paused clock.

mod cluster;
mod leading;
mod leaving;
mod link;
mod simulation;
mod support;
