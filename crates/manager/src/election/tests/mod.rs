//! Elections in memory, on a paused clock.

mod busy;
mod cluster;
mod leading;
mod leaving;
mod link;
mod simulation;
mod support;
