//! Annotations that users give a Service.

use cloudkeel_api::names::LB_ALGORITHM;
use cloudkeel_provider_local::{PROTECTED, TYPE};

/// An annotation that the provider reads: two of its own, and a neutral one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Annotation {
    /// The type of the balancer.
    Type,
    /// Whether the cloud refuses to delete the balancer.
    Protected,
    /// How connections are distributed.
    Algorithm,
}

impl Annotation {
    pub(crate) const ALL: [Self; 3] = [Self::Type, Self::Protected, Self::Algorithm];

    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Type => TYPE.name(),
            Self::Protected => PROTECTED.name(),
            Self::Algorithm => LB_ALGORITHM.name(),
        }
    }

    /// Values that it may get: some that are valid, and the one that is not. Without one it is removed.
    pub(crate) const fn values(self) -> &'static [Option<&'static str>] {
        match self {
            Self::Type => &[
                None,
                Some("small"),
                Some("medium"),
                Some("large"),
                Some("huge"),
            ],
            Self::Protected => &[None, Some("true"), Some("false"), Some("perhaps")],
            Self::Algorithm => &[None, Some("source-ip"), Some("fastest")],
        }
    }

    /// Whether a value is none that it may have.
    pub(crate) fn is_invalid(self, value: &str) -> bool {
        self.values().last().copied().flatten() == Some(value)
    }
}
