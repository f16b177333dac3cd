//! Log messages that operators act on, each with what it means and what to do about it.
//!
//! A crate declares its messages once, with [`log_messages!`](crate::log_messages), and logs them by name:
//! `warn!(%err, "{LEASE_RENEW_FAILED}")`. The page `docs/reference/logs.md` is printed from the same table.

use std::fmt;

/// The level that a message is logged at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogSeverity {
    /// A milestone worth searching for.
    Info,
    /// Something is wrong, and the program works around it.
    Warn,
    /// Something is wrong that stops part of the work.
    Error,
}

impl LogSeverity {
    /// The level as it appears in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

/// A documented log message. It is displayed as its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogMessage {
    /// The name of its constant.
    pub name: &'static str,
    /// The level it is logged at.
    pub severity: LogSeverity,
    /// The message itself, in lower case and without fields.
    pub text: &'static str,
    /// What happened, and what the program does about it.
    pub meaning: &'static str,
    /// What an operator can do.
    pub remedy: &'static str,
}

impl fmt::Display for LogMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// Declares the documented log messages of a crate: a constant for each, and `MESSAGES` with all of them.
#[macro_export]
macro_rules! log_messages {
    ($($name:ident: $severity:ident $text:literal, $meaning:literal, $remedy:literal;)*) => {
        $(pub(crate) const $name: $crate::LogMessage = $crate::LogMessage {
            name: stringify!($name),
            severity: $crate::LogSeverity::$severity,
            text: $text,
            meaning: $meaning,
            remedy: $remedy,
        };)*

        /// All documented log messages of this crate.
        pub const MESSAGES: &[$crate::LogMessage] = &[$($name),*];
    };
}
