//! What a dry run records, as data.

use cloudkeel_api::StepAction;
use serde::Serialize;

/// One thing that the manager would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DryRunStep {
    /// The controller that would do it.
    pub controller: String,
    /// What it does.
    pub action: StepAction,
    /// The object that it is about, such as `Service default/web`.
    pub object: String,
    /// The cloud that is called; `None` if the cluster is written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud: Option<String>,
    /// What is done.
    pub text: String,
}

/// What a controller waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingReport {
    /// The controller.
    pub controller: String,
    /// What it waits for.
    pub what: String,
}

/// The calls to a cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudCalls {
    /// The cloud.
    pub cloud: String,
    /// Calls that were made to work out the plan. All of them read.
    pub made: u64,
    /// Calls that carrying out the steps takes, as far as they are known now: a step can lead to others.
    pub planned: usize,
}

/// The result of a dry run so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DryRunReport {
    /// Whether every controller has worked off what it saw at first, and every cloud answered.
    pub complete: bool,
    /// What would be done.
    pub steps: Vec<DryRunStep>,
    /// What is not done yet, and why.
    pub waiting: Vec<WaitingReport>,
    /// What is wrong, as an Event would report it.
    pub problems: Vec<String>,
    /// What could not be read.
    pub failures: Vec<String>,
    /// What a dry run leaves out.
    pub not_planned: Vec<String>,
    /// The calls to each cloud.
    pub clouds: Vec<CloudCalls>,
    /// Writes to the Kubernetes API that carrying out the steps takes, Events and leases aside.
    pub api_writes: usize,
}

impl DryRunReport {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// How many steps do this.
    pub fn count(&self, action: StepAction) -> usize {
        let steps = self.steps.iter();
        steps.filter(|step| step.action == action).count()
    }
}
