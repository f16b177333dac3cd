//! A check as data: its name, what it asks for, what it needs, and how it is done.

use cloudkeel_api::{Capability, Features, ProxyProtocols};
use futures::future::BoxFuture;

use super::adapter::Stop;
use super::env::TestEnv;

/// What a check comes to.
pub(super) type Done = Result<(), Stop>;

/// How a check is done.
pub(super) type Run = for<'a> fn(&'a TestEnv<'a>) -> BoxFuture<'a, Done>;

/// One thing that a provider has to do.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) capability: Option<Capability>,
    pub(super) feature: Option<Feature>,
    /// Whether it cannot be declared as a gap.
    pub(super) mandatory: bool,
    pub(super) run: Run,
}

/// A check of a capability.
pub(super) const fn check(
    capability: Capability,
    name: &'static str,
    about: &'static str,
    run: Run,
) -> Check {
    Check {
        name,
        about,
        capability: Some(capability),
        feature: None,
        mandatory: false,
        run,
    }
}

/// A check of every provider, whatever its capabilities are.
pub(super) const fn general(name: &'static str, about: &'static str, run: Run) -> Check {
    Check {
        name,
        about,
        capability: None,
        feature: None,
        mandatory: false,
        run,
    }
}

/// A check of instances that every provider has to pass.
pub(super) const fn core(name: &'static str, about: &'static str, run: Run) -> Check {
    let mut core = check(Capability::Instances, name, about, run);
    core.mandatory = true;
    core
}

impl Check {
    /// The same, for providers that declare this feature.
    pub(super) const fn needing(mut self, feature: Feature) -> Self {
        self.feature = Some(feature);
        self
    }
}

/// Something that a provider declares about its balancers.
#[derive(Clone, Copy)]
pub(super) struct Feature {
    pub(super) words: &'static str,
    pub(super) is_there: fn(&Features) -> bool,
}

pub(super) const PROXY: Feature = Feature {
    words: "no PROXY protocol",
    is_there: |features| !matches!(features.proxy_protocol, ProxyProtocols::None),
};

macro_rules! features {
    ($($name:ident $field:ident $words:literal)*) => {
        $(pub(super) const $name: Feature = Feature {
            words: $words,
            is_there: |features| features.$field,
        };)*
    };
}

features! {
    DRAIN drain "no draining"
    BY_ADDRESS targets_by_address "no targets by address"
    UDP udp "no UDP"
    SCTP sctp "no SCTP"
    MIXED mixed_protocols "no mixed protocols"
    SOURCE_RANGES source_ranges "no source ranges"
    AFFINITY client_affinity "no session affinity"
    INTERNAL internal "no internal balancers"
    ADDRESS chosen_address "no chosen addresses"
    DUAL_STACK dual_stack "no dual stack"
}
