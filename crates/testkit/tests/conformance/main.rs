//! The conformance kit itself: a provider that passes every check, and mutants of it that do one thing wrong, each of which
//! must fail the checks that are about that thing.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail loudly"
)]

mod caught;
mod caught_by;
mod faulty;
mod faulty_balancers;
mod faulty_extras;
mod faulty_instances;
mod faulty_routes;
mod faulty_specs;
mod gaps;
mod interposed;
mod mutant;
mod shared;
