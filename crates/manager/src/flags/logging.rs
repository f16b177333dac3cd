//! Flags of logging, and the two that print and exit.

use std::time::Duration;

use cloudkeel_api::FlagKey;

use super::table::{Effect, FlagRow, Group, rows};

/// `--version`
pub const VERSION: FlagKey<String> = FlagKey::new(
    "version",
    "Print the version and exit: `true` for one line, `raw` for everything.",
);
/// `--help`
pub const HELP: FlagKey<bool> = FlagKey::new("help", "Print this help and exit.");
/// `-v`
pub const VERBOSITY: FlagKey<u16> = FlagKey::new(
    "v",
    "Log verbosity: 0 changes of state, 2 decisions, 4 details, 6 requests.",
)
.with_default("0");
/// `--vmodule`
pub const VMODULE: FlagKey<Vec<String>> = FlagKey::new(
    "vmodule",
    "Verbosity of single modules: `module=4,…`, such as `cloudkeel_http=6`.",
);
/// `--log-flush-frequency`
pub const LOG_FLUSH_FREQUENCY: FlagKey<Duration> =
    FlagKey::new("log-flush-frequency", "Longest time between log flushes.").with_default("5s");
/// `--logging-format`
pub const LOGGING_FORMAT: FlagKey<String> =
    FlagKey::new("logging-format", "Log format: text or json.").with_default("text");
/// `--log-text-split-stream`
pub const LOG_TEXT_SPLIT_STREAM: FlagKey<bool> = FlagKey::new(
    "log-text-split-stream",
    "In text form, errors go to stderr and the rest to stdout.",
)
.with_default("false");
/// `--log-json-split-stream`
pub const LOG_JSON_SPLIT_STREAM: FlagKey<bool> = FlagKey::new(
    "log-json-split-stream",
    "In JSON form, errors go to stderr and the rest to stdout.",
)
.with_default("false");
/// `--log-text-info-buffer-size`
pub const LOG_TEXT_BUFFER: FlagKey<String> = FlagKey::new(
    "log-text-info-buffer-size",
    "Buffer of a split text stream.",
)
.with_default("0");
/// `--log-json-info-buffer-size`
pub const LOG_JSON_BUFFER: FlagKey<String> = FlagKey::new(
    "log-json-info-buffer-size",
    "Buffer of a split JSON stream.",
)
.with_default("0");

pub(super) fn table() -> Vec<FlagRow> {
    use Effect::{None, Works};
    const UNBUFFERED: &str = "every line is written at once";
    rows(
        Group::Global,
        [
            (&HELP, Works),
            (&VERSION, Works),
            (&VERBOSITY, Works),
            (&VMODULE, Works),
            (&LOGGING_FORMAT, Works),
            (&LOG_TEXT_SPLIT_STREAM, Works),
            (&LOG_JSON_SPLIT_STREAM, Works),
            (&LOG_FLUSH_FREQUENCY, None(UNBUFFERED)),
            (&LOG_TEXT_BUFFER, None(UNBUFFERED)),
            (&LOG_JSON_BUFFER, None(UNBUFFERED)),
        ],
    )
}
