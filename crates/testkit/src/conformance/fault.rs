//! What goes wrong with calls, in the words of the checks.

use std::time::Duration;

use cloudkeel_emulation::CommonFault;
pub(super) use cloudkeel_emulation::FaultTiming;

/// The project that [`Fault::OtherScope`] shows. The adapter makes it, with an instance of its own.
pub const ELSEWHERE: &str = "elsewhere";

/// Something that goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The credential is refused (401); nothing happens.
    Unauthenticated,
    /// The credential may not do this (403); nothing happens.
    Denied,
    /// Too many calls (429); nothing happens.
    Throttled,
    /// The cloud fails (500); nothing happens.
    Unavailable,
    /// There is no answer, and nothing happens.
    Timeout,
    /// The answer cannot be read.
    Malformed,
    /// It happens, and then the answer is lost on the way.
    LostAnswer,
    /// A list says that there is nothing.
    EmptyList,
    /// A page has fewer items than it announces.
    TruncatedPage,
    /// A page says that it is the last and is not.
    LostPage,
    /// The credential sees another account, which has instances of its own, and every answer seems normal.
    OtherScope,
    /// Reads show what was this long ago.
    Stale(Duration),
    /// The answer takes this much longer.
    Slow(Duration),
}

impl Fault {
    /// As the cloud, or the interposer in front of it, plays it.
    pub(super) fn scripted(self) -> CommonFault {
        match self {
            Self::Unauthenticated => CommonFault::status(401),
            Self::Denied => CommonFault::status(403),
            Self::Throttled => CommonFault::status(429),
            Self::Unavailable => CommonFault::status(500),
            Self::Timeout => CommonFault::NoAnswer,
            Self::Malformed => CommonFault::MalformedJson,
            Self::LostAnswer => CommonFault::BrokenAfter,
            Self::EmptyList => CommonFault::EmptyList,
            Self::TruncatedPage => CommonFault::TruncatedPage,
            Self::LostPage => CommonFault::LostNextPage,
            Self::OtherScope => CommonFault::OtherProject {
                project: ELSEWHERE.to_owned(),
            },
            Self::Stale(by) => CommonFault::Stale { by },
            Self::Slow(by) => CommonFault::Slow { by },
        }
    }
}
