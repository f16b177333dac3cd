//! The table of commands that need more than the manager has.

use cloudkeel_manager::commands::AddedCommand;

/// Every command that was compiled in besides the manager's own.
pub(crate) const ADDED: &[AddedCommand] = &[
    #[cfg(feature = "local")]
    AddedCommand {
        name: "local-cloud",
        run: cloudkeel_local_cloud::main,
    },
];
