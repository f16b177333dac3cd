//! Metrics of a dry run.

use cloudkeel_api::StepAction;
use cloudkeel_controllers::ControllerName;

use super::catalogue::{Catalogue, Gauge, Labelled};
use crate::dry_run::DryRunStep;

/// How many steps a dry run has found, by controller and action.
#[derive(Debug, Clone)]
pub struct DryRunMetrics {
    steps: Labelled<Gauge, 2>,
}

impl DryRunMetrics {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            steps: catalogue.gauges(
                "cloudkeel_dry_run_steps",
                ["controller", "action"],
                "With `--dry-run`: steps that a controller would carry out now (`create`, `change`, `delete`).",
            ),
        }
    }

    /// These are all steps now.
    #[expect(
        clippy::cast_precision_loss,
        reason = "no cluster needs so many steps that a float could not count them"
    )]
    pub(crate) fn set<'a>(&self, steps: impl Iterator<Item = &'a DryRunStep>) {
        let mut counts = std::collections::BTreeMap::<_, usize>::new();
        for name in ControllerName::ALL {
            for action in StepAction::ALL {
                counts.insert((name.canonical(), action), 0);
            }
        }
        for step in steps {
            *counts.entry((&step.controller, step.action)).or_default() += 1;
        }
        for ((controller, action), count) in counts {
            self.steps
                .with([controller, action.as_str()])
                .set(count as f64);
        }
    }
}
