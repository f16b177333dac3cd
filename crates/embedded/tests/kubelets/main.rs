//! Simulated kubelets: their Nodes, their health, and real traffic to their node ports.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

mod lifecycle;
mod traffic;
