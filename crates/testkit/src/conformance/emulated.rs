//! The parts of an [`Emulator`](super::Emulator) that are the same for every cloud of `cloudkeel_emulation`.

use std::time::Duration;

use cloudkeel_emulation::{Emulated, FaultMatch, ListFault, Mishap, ScriptedFault};

use super::emulator::{Calls, Strike, Trouble};

/// The project that [`Trouble::OtherScope`] shows. The emulator makes it, with a machine of its own.
pub const ELSEWHERE: &str = "elsewhere";

/// How often a cloud was called.
pub fn calls(cloud: &impl Emulated) -> Calls {
    cloud.with_door(|door| {
        let counts = door.log.counts();
        Calls {
            total: counts.total(),
            mutating: counts.mutations(),
        }
    })
}

/// Lets calls meet trouble.
pub fn strike<C: Emulated>(cloud: &C, strike: Strike, trouble: Trouble) {
    let (faults, fault) = (cloud.faults(), fault(trouble));
    let mutating = || FaultMatch::any().mutating();
    if let Strike::Mutation(nth) | Strike::MutationsFrom(nth) = strike {
        let harmless = C::Fault::of(Mishap::Slow(Duration::ZERO));
        faults.times(mutating(), nth.saturating_sub(1), harmless);
    }
    match strike {
        Strike::Always => faults.always(FaultMatch::any(), fault),
        Strike::Mutation(_) => faults.once(mutating(), fault),
        Strike::MutationsFrom(_) => faults.always(mutating(), fault),
    };
}

/// Ends all trouble.
pub fn heal(cloud: &impl Emulated) {
    cloud.faults().clear();
}

fn fault<F: ScriptedFault>(trouble: Trouble) -> F {
    match trouble {
        Trouble::Unauthenticated => F::refusal(401),
        Trouble::Denied => F::refusal(403),
        Trouble::Throttled => F::refusal(429),
        Trouble::Unavailable => F::refusal(500),
        Trouble::Timeout => F::of(Mishap::NoAnswer),
        Trouble::Malformed => F::of(Mishap::MalformedJson),
        Trouble::LostAnswer => F::of(Mishap::BrokenAfter),
        Trouble::EmptyList => F::of(Mishap::List(ListFault::EmptyList)),
        Trouble::TruncatedPage => F::of(Mishap::List(ListFault::TruncatedPage)),
        Trouble::LostPage => F::of(Mishap::List(ListFault::LostNextPage)),
        Trouble::OtherScope => F::of(Mishap::OtherProject(ELSEWHERE)),
    }
}
