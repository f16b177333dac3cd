//! What goes wrong by script.

use cloudkeel_provider_local::wire::ErrorCode;

cloudkeel_emulation::faults! {
    /// Something that goes wrong with a call.
    pub enum Fault {
        /// The cloud refuses with this status, and nothing happens.
        Status {
            /// The HTTP status.
            status: u16,
            /// The code in the body; by default the one that goes with the status.
            #[serde(default)]
            code: Option<ErrorCode>,
            /// Whole seconds for `Retry-After`.
            #[serde(default)]
            retry_after_seconds: Option<u64>,
        },
    }
}

impl Fault {
    /// A refusal with this status and the code that goes with it.
    pub const fn status(status: u16) -> Self {
        Self::Status {
            status,
            code: None,
            retry_after_seconds: None,
        }
    }

    /// A refusal because of too many calls.
    pub const fn too_many_calls(retry_after_seconds: Option<u64>) -> Self {
        Self::Status {
            status: 429,
            code: None,
            retry_after_seconds,
        }
    }
}

/// The code that goes with a status.
pub(super) const fn code_of(status: u16) -> ErrorCode {
    match status {
        401 => ErrorCode::Unauthorized,
        403 => ErrorCode::Forbidden,
        404 => ErrorCode::NotFound,
        409 | 412 => ErrorCode::Conflict,
        423 => ErrorCode::Locked,
        429 => ErrorCode::RateLimited,
        400..=499 => ErrorCode::Invalid,
        _ => ErrorCode::Unavailable,
    }
}
