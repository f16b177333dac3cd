//! Flags that only cloudkeel has. Each one switches something that upstream does not do.

use std::time::Duration;

use cloudkeel_api::FlagKey;

use super::table::{Effect, FlagRow, Group, rows};

/// `--shutdown-grace-period`
pub const SHUTDOWN_GRACE_PERIOD: FlagKey<Duration> = FlagKey::new(
    "shutdown-grace-period",
    "How long work in flight may finish after SIGTERM, before the lease is released.",
)
.with_default("10s");
/// `--leader-elect-release-on-exit`
pub const RELEASE_ON_EXIT: FlagKey<bool> = FlagKey::new(
    "leader-elect-release-on-exit",
    "Give the lease back on a clean exit, so that the next replica starts at once.",
)
.with_default("true");

/// `--follow-instance-type`
pub const FOLLOW_INSTANCE_TYPE: FlagKey<bool> = FlagKey::new(
    "follow-instance-type",
    "Change the instance-type labels of a Node whose machine was resized.",
)
.with_default("true");

pub(super) fn table() -> Vec<FlagRow> {
    use Effect::Works;
    rows(
        Group::Cloudkeel,
        [(&SHUTDOWN_GRACE_PERIOD, Works), (&RELEASE_ON_EXIT, Works)],
    )
}
