//! Annotations that users give a Service.

use cloudkeel_api::names::{LB_ALGORITHM, LB_RETAIN};
use cloudkeel_provider_local::{PROTECTED, TYPE};

/// An annotation: two that only the provider reads, and two neutral ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Annotation {
    /// The type of the balancer.
    Type,
    /// Whether the cloud refuses to delete the balancer.
    Protected,
    /// How connections are distributed.
    Algorithm,
    /// Whether the balancer stays when the Service goes.
    Retain,
}

impl Annotation {
    /// Those that balancers show, and that change at random.
    pub(crate) const SHOWN: [Self; 3] = [Self::Type, Self::Protected, Self::Algorithm];

    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Type => TYPE.name(),
            Self::Protected => PROTECTED.name(),
            Self::Algorithm => LB_ALGORITHM.name(),
            Self::Retain => LB_RETAIN.name(),
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
            Self::Retain => &[None, Some("true"), Some("always")],
        }
    }

    /// Whether a value is none that it may have.
    pub(crate) fn is_invalid(self, value: &str) -> bool {
        self.values().last().copied().flatten() == Some(value)
    }
}
