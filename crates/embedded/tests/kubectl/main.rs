//! The real `kubectl` against the embedded API, over TLS.
//!
//! Without `kubectl`, or Go to build it, every one of these tests fails and says so.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

mod changing;
mod fixture;
mod showing;
