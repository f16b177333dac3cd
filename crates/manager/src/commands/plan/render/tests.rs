use super::*;
use crate::dry_run::{CloudCalls, WaitingReport};

fn step(
    controller: ControllerName,
    action: StepAction,
    object: &str,
    cloud: Option<&str>,
    text: &str,
) -> DryRunStep {
    DryRunStep {
        controller: controller.canonical().to_owned(),
        action,
        object: object.to_owned(),
        cloud: cloud.map(str::to_owned),
        text: text.to_owned(),
    }
}

#[test]
fn a_plan_is_printed_controller_by_controller_with_its_calls() {
    let report = DryRunReport {
        complete: true,
        steps: vec![
            step(
                ControllerName::CloudNode,
                StepAction::Change,
                "Node a",
                None,
                "set provider ID x://1",
            ),
            step(
                ControllerName::Service,
                StepAction::Create,
                "Service default/web",
                Some("fsn"),
                "create it",
            ),
        ],
        waiting: vec![WaitingReport {
            controller: ControllerName::CloudNode.canonical().to_owned(),
            what: "b: no instance (for 3 s)".to_owned(),
        }],
        problems: vec!["Node c: NodeKept: held".to_owned()],
        clouds: vec![CloudCalls {
            cloud: "fsn".to_owned(),
            made: 4,
            planned: 1,
        }],
        api_writes: 1,
        ..DryRunReport::default()
    };
    let controllers = [
        ControllerName::CloudNode,
        ControllerName::CloudNodeLifecycle,
        ControllerName::Service,
    ];
    let text = plan_text(&report, &controllers, Screen::plain());
    let expected = "\
cloud-node-controller
  ~ Node a  cluster  set provider ID x://1
  waits: b: no instance (for 3 s)
cloud-node-lifecycle-controller  nothing to do
service-lb-controller
  + Service default/web  fsn  create it

Problems
  ! Node c: NodeKept: held

To do: 1 to create, 1 to change, 0 to delete.
Cloud fsn: 4 calls made to plan, 1 to carry it out.
Cluster: 1 writes to carry it out.
";
    assert_eq!(text, expected);
}

#[test]
fn a_plan_that_is_empty_or_incomplete_says_so() {
    let empty = DryRunReport {
        complete: true,
        ..DryRunReport::default()
    };
    let text = plan_text(&empty, &[], Screen::plain());
    assert!(text.contains("Nothing to do."), "{text}");
    assert!(!text.contains("incomplete"), "{text}");
    let text = plan_text(&DryRunReport::default(), &[], Screen::plain());
    assert!(text.contains("Nothing found to do so far."), "{text}");
    assert!(text.contains("The plan is incomplete."), "{text}");
}
