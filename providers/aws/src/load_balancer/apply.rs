//! Carrying out steps.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::{CloudError, DesiredState, ErrorKind, StepOutcome};
use cloudkeel_toolkit::xml::Element;

use super::AwsBalancers;
use super::step::{Step, StepKind};
use crate::client::Call;

/// When to try again what is still in use: the interfaces of a balancer outlive it by seconds to minutes.
const IN_USE: Duration = Duration::from_secs(5);

/// What an answer may bring for the calls after it.
const OUTPUTS: [&str; 2] = ["groupId", "TargetGroupArn"];

impl AwsBalancers {
    pub(super) async fn execute_step(
        &self,
        desired: DesiredState<'_>,
        step: &Step,
    ) -> Result<StepOutcome, CloudError> {
        let mut outputs = BTreeMap::new();
        for call in &step.calls {
            let call = filled(call, &outputs);
            match self.account.api.send(&call).await {
                Ok(answer) => gather(&answer, &mut outputs),
                Err(error) => return settle(desired, step, error),
            }
        }
        Ok(StepOutcome::Done)
    }
}

/// What an error means for this kind of step.
fn settle(
    desired: DesiredState<'_>,
    step: &Step,
    error: CloudError,
) -> Result<StepOutcome, CloudError> {
    let is_present = matches!(desired, DesiredState::Present(_));
    match (step.kind, error.kind()) {
        (StepKind::Remove, ErrorKind::Busy) => Ok(StepOutcome::Postponed {
            why: format!("{step}: it is still in use"),
            retry_after: IN_USE,
        }),
        (StepKind::Remove, ErrorKind::NotFound) if is_present => Ok(StepOutcome::Done),
        // What is there already is as good as added.
        (StepKind::Add, ErrorKind::Conflict | ErrorKind::AlreadyExists) => Ok(StepOutcome::Done),
        // A target that is not there is for the caller to report: its Node may be about to go.
        (StepKind::Remove | StepKind::Add, _) => Err(error),
        (StepKind::Create, _) => Err(error.not_shown_yet().vanished()),
        (StepKind::Change, _) => Err(error.vanished()),
    }
}

/// Replaces `$groupId` and the like by what an earlier answer said.
fn filled(call: &Call, outputs: &BTreeMap<&str, String>) -> Call {
    let mut call = call.clone();
    for (_, value) in &mut call.params {
        if let Some(output) = value.strip_prefix('$').and_then(|name| outputs.get(name)) {
            value.clone_from(output);
        }
    }
    call
}

fn gather(answer: &Element, outputs: &mut BTreeMap<&'static str, String>) {
    for name in OUTPUTS {
        let paths = [name.to_owned(), format!("TargetGroups/member/{name}")];
        let mut found = paths.iter().filter_map(|path| answer.text_at(path));
        if let Some(text) = found.next() {
            outputs.insert(name, text.to_owned());
        }
    }
}
