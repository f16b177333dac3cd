//! Plans as data: they can be compared, logged, counted and printed.

use std::fmt;

use serde::Serialize;

/// What a step does to the object that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepAction {
    /// Makes something that is not there.
    Create,
    /// Changes something that is there.
    Change,
    /// Takes something away.
    Delete,
}

impl StepAction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Create, Self::Change, Self::Delete];

    /// Its stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Delete => "delete",
        }
    }

    /// Its sign in a printed plan.
    pub const fn sign(self) -> char {
        match self {
            Self::Create => '+',
            Self::Change => '~',
            Self::Delete => '-',
        }
    }
}

/// One thing a provider would do. Its enum of steps is plain data; this is how it reads.
pub trait Step: fmt::Debug + fmt::Display + Clone + PartialEq + Send + Sync + 'static {
    /// What it does, so that a printed plan can show it.
    fn action(&self) -> StepAction {
        StepAction::Change
    }

    /// Whether this must not be done because `failed`, another step of the same attempt, was not.
    ///
    /// In doubt it must not. Steps that say otherwise are carried out whatever becomes of the others,
    /// so that a name that is taken does not keep a balancer from following its Nodes.
    fn depends_on(&self, failed: &Self) -> bool {
        let _ = failed;
        true
    }

    /// Whether this is `done` once more. Leave out what every write changes, such as a version: a step
    /// that is planned again right after it went well has no effect in this cloud.
    fn repeats(&self, done: &Self) -> bool {
        self == done
    }
}

/// A step as it is shown to people and machines, whatever the cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// A sentence without a full stop, such as `add target node-1`.
    pub text: String,
    /// What it does.
    pub action: StepAction,
    /// Whether something is taken away.
    pub destructive: bool,
    /// Whether the cloud accepted it and still shows what it showed before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ineffective: bool,
}

impl<S: Step> From<&S> for PlannedStep {
    fn from(step: &S) -> Self {
        Self {
            text: step.to_string(),
            action: step.action(),
            destructive: step.action() == StepAction::Delete,
            ineffective: false,
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

    /// The steps that the cloud accepted without changing anything.
    pub fn ineffective(&self) -> impl Iterator<Item = &PlannedStep> {
        self.steps.iter().filter(|step| step.ineffective)
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
