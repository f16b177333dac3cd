//! The same cases on the embedded API and on a real kube-apiserver: what both say must agree.
//!
//! A case asks a few things and leaves a transcript. What no two servers share (UIDs, versions, times, addresses,
//! ports) is replaced by marks in order of appearance, so that also the relations between them are compared.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on fails loudly"
)]

mod bench;
mod compare;
mod deletion;
mod dual_stack;
mod events;
mod expiry;
mod leases;
mod lists;
mod metadata;
mod nodes;
mod normalise;
mod page;
mod patches;
mod plain;
mod protobuf;
mod refusals;
mod reviews;
mod service_types;
mod services;
mod status;
mod tables;
mod watches;
