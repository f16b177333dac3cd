//! A set of whole numbers, kept as the runs it consists of.

use std::collections::BTreeMap;

/// A set of whole numbers, kept as the runs it consists of.
///
/// A cluster CIDR may have anything from one block to four billion. Runs cost as much as what is used
/// is scattered, whatever the range: a service range is one entry, and so are neighbours that were
/// handed out one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    /// First and last of each run. No two of them touch.
    runs: BTreeMap<u64, u64>,
    count: u64,
}

impl Runs {
    /// How many numbers there are.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Adds all from `first` to `last`. Returns how many of them are new.
    pub(super) fn insert(&mut self, first: u64, last: u64) -> u64 {
        let before = self.count;
        let (mut low, mut high) = (first, last);
        while let Some((begin, end)) = self.reaching(low.saturating_sub(1), high.saturating_add(1))
        {
            self.take_out(begin, end);
            low = low.min(begin);
            high = high.max(end);
        }
        self.put(low, high);
        self.count - before
    }

    /// Removes all from `first` to `last`. Returns how many of them were there.
    pub(super) fn remove(&mut self, first: u64, last: u64) -> u64 {
        let before = self.count;
        while let Some((begin, end)) = self.reaching(first, last) {
            self.take_out(begin, end);
            if begin < first {
                self.put(begin, first - 1);
            }
            if end > last {
                self.put(last + 1, end);
            }
        }
        before - self.count
    }

    /// The first number from `start` on that is not in the set.
    pub(super) fn first_gap_from(&self, start: u64) -> u64 {
        self.reaching(start, start)
            .map_or(start, |(_, end)| end + 1)
    }

    /// The last of the runs that have something between `first` and `last`.
    fn reaching(&self, first: u64, last: u64) -> Option<(u64, u64)> {
        let (begin, end) = self.runs.range(..=last).next_back()?;
        (*end >= first).then_some((*begin, *end))
    }

    fn put(&mut self, first: u64, last: u64) {
        self.runs.insert(first, last);
        self.count += last - first + 1;
    }

    fn take_out(&mut self, first: u64, last: u64) {
        self.runs.remove(&first);
        self.count -= last - first + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_become_one_run_and_a_removal_splits_it() {
        let mut runs = Runs::default();
        for number in [0, 2, 1] {
            assert_eq!(runs.insert(number, number), 1);
        }
        assert_eq!(runs.runs, BTreeMap::from([(0, 2)]));
        assert_eq!(runs.remove(1, 1), 1);
        assert_eq!(runs.runs, BTreeMap::from([(0, 0), (2, 2)]));
        assert_eq!(runs.first_gap_from(0), 1);
        assert_eq!(runs.first_gap_from(2), 3);
    }

    proptest! {
        #[test]
        fn runs_do_what_a_plain_set_does(
            steps in prop::collection::vec((any::<bool>(), 0_u64..40, 0_u64..12), 0..60),
        ) {
            let mut runs = Runs::default();
            let mut plain = BTreeSet::new();
            for (add, first, length) in steps {
                let numbers = first..=first + length;
                if add {
                    let new = numbers.filter(|number| plain.insert(*number)).count() as u64;
                    prop_assert_eq!(runs.insert(first, first + length), new);
                } else {
                    let gone = numbers.filter(|number| plain.remove(number)).count() as u64;
                    prop_assert_eq!(runs.remove(first, first + length), gone);
                }
                prop_assert_eq!(runs.count(), plain.len() as u64);
                for start in 0..60 {
                    let gap = (start..100).find(|number| !plain.contains(number));
                    prop_assert_eq!(Some(runs.first_gap_from(start)), gap);
                }
            }
        }
    }
}
