//! What happens in a run: drawn from a seed before it begins, so that it can be printed, replayed and
//! made shorter.

use std::fmt;
use std::time::Duration;

use crate::accounts::Layout;
use crate::action::Action;
use crate::draw::Draw;
use crate::theme;

/// How long things may happen.
pub(crate) const TROUBLE: Duration = Duration::from_mins(30);

/// One thing that happens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Happening {
    /// When, since the beginning.
    pub(crate) at: Duration,
    /// What.
    pub(crate) action: Action,
}

/// Everything that happens, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(crate) layout: Layout,
    pub(crate) happenings: Vec<Happening>,
}

impl Plan {
    /// The plan that belongs to a seed.
    pub fn of_seed(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let count = draw.between(6, 36);
        let mut happenings: Vec<_> = (0..count)
            .map(|_| Happening {
                at: draw.time(TROUBLE),
                action: Action::draw(&mut draw),
            })
            .collect();
        happenings.extend(theme::draw(&mut draw));
        let layout = Layout::of_seed(seed);
        if layout.has_two() {
            for happening in &mut happenings {
                let action = happening.action.clone();
                happening.action = action.among_accounts(&mut draw);
            }
            happenings.extend(theme::draw_of_two_accounts(&mut draw));
        }
        happenings.sort_by_key(|happening| happening.at);
        Self { layout, happenings }
    }

    /// How many things happen.
    pub fn len(&self) -> usize {
        self.happenings.len()
    }

    /// Whether nothing happens.
    pub fn is_empty(&self) -> bool {
        self.happenings.is_empty()
    }

    /// The same without what happens from `start` on, for `count` things.
    pub(crate) fn without(&self, start: usize, count: usize) -> Self {
        let kept = |place: &usize| !(start..start + count).contains(place);
        let happenings = self.happenings.iter().enumerate();
        Self {
            layout: self.layout,
            happenings: happenings
                .filter(|(place, _)| kept(place))
                .map(|(_, happening)| happening.clone())
                .collect(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.layout.has_two() {
            writeln!(f, "  two accounts: {:?}", self.layout)?;
        }
        for happening in &self.happenings {
            let seconds = happening.at.as_secs_f64();
            writeln!(f, "  {seconds:>7.1} s  {}", happening.action)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_plan_and_another_seed_another() {
        assert_eq!(Plan::of_seed(7), Plan::of_seed(7));
        assert_ne!(Plan::of_seed(7), Plan::of_seed(8));
    }

    #[test]
    fn happenings_are_in_order_and_within_the_time_of_trouble() {
        for seed in 0..50 {
            let plan = Plan::of_seed(seed);
            assert!(!plan.is_empty());
            assert!(plan.happenings.is_sorted_by_key(|happening| happening.at));
            assert!(plan.happenings.iter().all(|h| h.at <= TROUBLE));
        }
    }

    #[test]
    fn a_part_can_be_left_out() {
        let plan = Plan::of_seed(3);
        let shorter = plan.without(1, 2);
        assert_eq!(shorter.len(), plan.len() - 2);
        assert_eq!(shorter.happenings[0], plan.happenings[0]);
        assert_eq!(shorter.happenings[1], plan.happenings[3]);
    }
}
