//! The faults of the cloud that are measured.

use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, SimulatedCloud};

/// A project that the token shows in place of ours.
pub(crate) const OTHER_PROJECT: &str = "other";

/// What goes wrong while kubelets are silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloudFault {
    Unauthorized,
    Forbidden,
    Throttled,
    ServerError,
    NoAnswer,
    EmptyList,
    LostPages,
    ShortPages,
    OtherProject,
    /// No fault at all: the machines are gone, and their Nodes have to go.
    MachinesReallyGone,
}

impl CloudFault {
    pub(crate) const ALL: [Self; 10] = [
        Self::Unauthorized,
        Self::Forbidden,
        Self::Throttled,
        Self::ServerError,
        Self::NoAnswer,
        Self::EmptyList,
        Self::LostPages,
        Self::ShortPages,
        Self::OtherProject,
        Self::MachinesReallyGone,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unauthorized => "401",
            Self::Forbidden => "403",
            Self::Throttled => "429",
            Self::ServerError => "500",
            Self::NoAnswer => "no answer",
            Self::EmptyList => "empty list",
            Self::LostPages => "half of the pages",
            Self::ShortPages => "pages too short",
            Self::OtherProject => "another project's token",
            Self::MachinesReallyGone => "machines really gone",
        }
    }

    /// Makes every call go wrong from now on.
    pub(crate) fn inject(self, cloud: &SimulatedCloud) {
        let fault = match self {
            Self::Unauthorized => Fault::status(401),
            Self::Forbidden => Fault::status(403),
            Self::Throttled => Fault::too_many_calls(Some(10)),
            Self::ServerError => Fault::status(500),
            Self::NoAnswer => Fault::NoAnswer,
            Self::EmptyList => Fault::EmptyList,
            Self::LostPages => Fault::LostNextPage,
            Self::ShortPages => Fault::TruncatedPage,
            Self::OtherProject => Fault::OtherProject {
                project: OTHER_PROJECT.to_owned(),
            },
            Self::MachinesReallyGone => return,
        };
        cloud.faults().always(FaultMatch::any(), fault);
    }
}
