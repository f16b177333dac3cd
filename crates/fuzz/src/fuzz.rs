//! One target, many inputs.

use std::ops::ControlFlow;

use crate::guard::{Broken, Guard};
use crate::mutate::Mutator;
use crate::shrink::smallest;
use crate::target::Target;

/// An input that breaks a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Before it, this many rounds went well.
    pub round: u64,
    /// How.
    pub how: Broken,
    /// The smallest that could be found.
    pub input: Vec<u8>,
}

/// Which inputs to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Where chance comes from.
    pub seed: u64,
    /// How many inputs at most.
    pub rounds: u64,
}

/// Is called with every input before it is read, and may end it all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>;

/// Feeds a target: its examples as they are, then what becomes of them. Returns how many inputs were read,
/// and what was found.
pub fn fuzz(target: Target, span: Span, progress: Progress<'_>) -> (u64, Option<Found>) {
    let mut guard = Guard::new(target);
    let examples = (target.examples)();
    let mut mutator = Mutator::new(span.seed, examples.clone(), (target.words)());
    let mut examples = examples.into_iter();
    for round in 0..span.rounds {
        let input = examples.next().unwrap_or_else(|| mutator.next_input());
        if progress(round, &input).is_break() {
            return (round, None);
        }
        if let Some(how) = guard.read(&input) {
            let input = shrunk(&mut guard, input, &how);
            return (round + 1, Some(Found { round, how, input }));
        }
    }
    (span.rounds, None)
}

/// The smallest input that breaks the target in the same way. What takes long is left as it is: thousands
/// of tries would take hours.
fn shrunk(guard: &mut Guard, input: Vec<u8>, how: &Broken) -> Vec<u8> {
    if matches!(how, Broken::Slow(_) | Broken::Greedy(_)) {
        return input;
    }
    let same = |input: &[u8]| guard.read(input).is_some_and(|other| other.is_like(how));
    smallest(&input, same)
}

#[cfg(test)]
mod tests;
