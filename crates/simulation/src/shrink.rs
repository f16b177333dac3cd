//! The shortest history that still goes wrong.

use crate::plan::Plan;

/// Runs that may be spent on making a history shorter.
const MOST_RUNS: usize = 400;

/// Leaves out more and more of the plan, as long as what is left still goes wrong: halves first, then
/// smaller parts, down to single things.
pub fn shortest(plan: Plan, goes_wrong: impl Fn(&Plan) -> bool) -> Plan {
    let mut shortest = plan;
    let mut runs = 0;
    let mut part = shortest.len().div_ceil(2).max(1);
    loop {
        let mut start = 0;
        let mut shortened = false;
        while start < shortest.len() {
            if runs == MOST_RUNS {
                return shortest;
            }
            runs += 1;
            let candidate = shortest.without(start, part);
            if goes_wrong(&candidate) {
                shortest = candidate;
                shortened = true;
            } else {
                start += part;
            }
        }
        if part == 1 && !shortened {
            return shortest;
        }
        if !shortened {
            part = part.div_ceil(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_left() {
        let plan = Plan::of_seed(1);
        assert!(plan.len() > 4, "{}", plan.len());
        let culprits = [
            plan.actions[1].clone(),
            plan.actions[plan.len() - 2].clone(),
        ];
        let goes_wrong = |plan: &Plan| {
            culprits
                .iter()
                .all(|culprit| plan.actions.contains(culprit))
        };
        assert_eq!(shortest(plan, goes_wrong).actions, culprits);
    }

    #[test]
    fn what_goes_wrong_by_itself_needs_nothing_to_happen() {
        assert!(shortest(Plan::of_seed(2), |_| true).is_empty());
    }
}
