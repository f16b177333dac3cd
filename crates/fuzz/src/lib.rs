//! Feeds malformed input to everything that parses external input.
//!
//! Clouds, API servers, kubelets, users and unknown clients all send bytes. Every reader of them is a
//! [`Target`]: it takes any bytes, and must neither panic, nor work without end, nor eat memory without
//! end, nor break what is known to hold. The fuzzer makes the bytes from good examples, deterministically:
//! the same seed makes the same inputs on every machine.
//!
//! ```text
//! examples ─▶ mutate ─▶ watch a target read it ─▶ fine, next
//!                            └─ broken ─▶ shrink ─▶ a file, and how to see it again
//! ```

mod fuzz;
mod guard;
mod json;
mod mutate;
mod shrink;
mod target;
pub mod targets;

pub use fuzz::{Found, Progress, Span, fuzz};
pub use guard::{Broken, Guard, watch_panics};
pub use mutate::Mutator;
pub use shrink::smallest;
pub use target::{Check, Reader, Target};
