//! What can be done to a balancer, as data: calls with their parameters.

use crate::client::Call;

/// What becomes of an error of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// Makes something whose name was free: if it is taken, the cloud does not show it yet.
    Create,
    /// Changes something that is there.
    Change,
    /// Adds what may be there already.
    Add,
    /// Removes something. While it is in use, it is tried again later.
    Remove,
}

/// Calls that belong together. A parameter such as `$groupId` is filled in from the answers of earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(super) kind: StepKind,
    /// A sentence without a full stop.
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    /// What later steps may need.
    gives: Option<String>,
    /// The step without which this one makes no sense.
    needs: Option<String>,
}

impl Step {
    pub(super) fn new(kind: StepKind, text: impl Into<String>, calls: Vec<Call>) -> Self {
        Self {
            kind,
            text: text.into(),
            calls,
            gives: None,
            needs: None,
        }
    }

    pub(super) fn create(text: impl Into<String>, calls: Vec<Call>) -> Self {
        Self::new(StepKind::Create, text, calls)
    }

    pub(super) fn change(text: impl Into<String>, call: Call) -> Self {
        Self::new(StepKind::Change, text, vec![call])
    }

    pub(super) fn add(text: impl Into<String>, call: Call) -> Self {
        Self::new(StepKind::Add, text, vec![call])
    }

    pub(super) fn remove(text: impl Into<String>, call: Call) -> Self {
        Self::new(StepKind::Remove, text, vec![call])
    }

    /// Steps that need this are left out if it fails.
    #[must_use]
    pub(super) fn giving(mut self, what: impl Into<String>) -> Self {
        self.gives = Some(what.into());
        self
    }

    #[must_use]
    pub(super) fn needing(mut self, what: impl Into<String>) -> Self {
        self.needs = Some(what.into());
        self
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl cloudkeel_api::Step for Step {
    fn action(&self) -> cloudkeel_api::StepAction {
        match self.kind {
            StepKind::Create | StepKind::Add => cloudkeel_api::StepAction::Create,
            StepKind::Change => cloudkeel_api::StepAction::Change,
            StepKind::Remove => cloudkeel_api::StepAction::Delete,
        }
    }

    fn depends_on(&self, failed: &Self) -> bool {
        self.needs.is_some() && self.needs == failed.gives
    }
}
