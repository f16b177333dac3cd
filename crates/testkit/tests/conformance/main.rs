//! The conformance kit itself.
