//! Plans as data: they can be compared, logged, counted and printed.

use std::fmt;

use serde::Serialize;

/// One thing a provider would do. Its enum of steps is plain data; this is how it reads.
pub trait Step: fmt::Debug + fmt::Display + Clone + PartialEq + Send + Sync + 'static {
    /// Whether something is taken away, so that a printed plan can warn.
    fn is_destructive(&self) -> bool {
        false
    }
}

/// A step as it is shown to people and machines, whatever the cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// A sentence without a full stop, such as `add target node-1`.
    pub text: String,
    /// Whether something is taken away.
    pub destructive: bool,
}

impl<S: Step> From<&S> for PlannedStep {
    fn from(step: &S) -> Self {
        Self {
            text: step.to_string(),
            destructive: step.is_destructive(),
        }
    }
}

/// Steps in the order in which they are carried out. Empty means: nothing differs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<PlannedStep>,
}

impl Plan {
    /// The printable form of a provider's own steps.
    pub fn of<S: Step>(steps: &[S]) -> Self {
        Self {
            steps: steps.iter().map(PlannedStep::from).collect(),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// How many steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing to do");
        }
        for (index, step) in self.steps.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            let sign = if step.destructive { '-' } else { '+' };
            write!(f, "{newline}{sign} {}", step.text)?;
        }
        Ok(())
    }
}
