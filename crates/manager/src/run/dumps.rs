//! No picture of our memory: credentials are in it.

/// Tells the kernel to write no core dump of this process, and to let nobody but root read its memory and
/// its environment. Programs that it starts are not concerned.
#[cfg(target_os = "linux")]
pub(super) fn refuse_dumps() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "core dumps could not be refused; they would hold credentials");
    }
}

/// Elsewhere it is only developed.
#[cfg(not(target_os = "linux"))]
pub(super) fn refuse_dumps() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    use super::*;

    #[test]
    fn the_kernel_is_told() {
        refuse_dumps();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
