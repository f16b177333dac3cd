use std::sync::Arc;

use cloudkeel_api::{
    Absence, Doubt, Existence, InstanceState, KnownInstance, PlannedStep, ScopeFingerprint,
    StepAction,
};
use serde_json::json;

use super::*;
use crate::fixtures::{
    ago, healthy, machine, node, node_with, not_ready, now, observed, one, service_with, tainted,
};
use crate::snapshot::{InstanceMatch, LookUp, NodeOwner, NodeState, Trouble};

fn story(node_in_question: NodeState) -> Explanation {
    let name = node_in_question.name().to_owned();
    let snapshot = healthy(vec![node("a"), node("b"), node_in_question]);
    explain_node(&snapshot, &name).unwrap()
}

/// A Node that is not Ready, is not listed, and whose machine is proven gone.
fn gone(more: serde_json::Value) -> NodeState {
    let mut node = not_ready("x", more);
    node.matches = [("fsn".to_owned(), InstanceMatch::None { lookalike: None })].into();
    let scope = ScopeFingerprint::new("project p");
    let absence = Absence::from_empty_answer("get server", &scope, now());
    let known = KnownInstance::of(&machine("a"), &scope, now());
    let id = "hcloud://x".parse().unwrap();
    let answer = Existence::from_absence(id, absence, Some(&known));
    node.looked_up = vec![LookUp {
        cloud: "fsn".to_owned(),
        answer: Arc::new(answer),
    }];
    node
}

fn met(story: &Explanation) -> String {
    let signs = story.deletion.iter().map(|it| match it.met {
        Met::Yes => 'y',
        Met::No => 'n',
        Met::Unknown => '?',
    });
    signs.collect()
}

#[test]
fn a_healthy_node_has_nothing_to_wait_for() {
    let story = story(node("x"));
    assert_eq!(story.next.what, "nothing differs");
    assert!(story.deletion.is_empty() && story.findings.is_empty());
    let owner = &story.sections[0].lines[0];
    assert_eq!(
        owner,
        "cloud fsn, because its provider ID hcloud://x is of that cloud"
    );
}

#[test]
fn a_node_without_a_machine_lists_every_condition_of_its_deletion() {
    let story = story(gone(json!({})));
    assert_eq!(met(&story), "yyy?yy??");
    let next = &story.next;
    assert!(
        next.what.starts_with("the cloud is asked again"),
        "{next:?}"
    );
    let heartbeat = &story.deletion[1].value;
    assert_eq!(heartbeat, "NotReady for 10m; last heartbeat 5s ago");
}

#[test]
fn what_keeps_a_node_is_said() {
    let hold = json!({"metadata": {"annotations": {"cloudkeel.dev/hold": "true"}}});
    let now = json!({"metadata": {"annotations": {"cloudkeel.dev/delete-now": "true"}}});
    let mut exists = not_ready("x", json!({}));
    exists.looked_up = vec![LookUp {
        cloud: "fsn".to_owned(),
        answer: Arc::new(Existence::present(machine("x"))),
    }];
    let mut off = machine("x");
    off.state = InstanceState::ShutDown;
    let mut shut_down = not_ready("x", json!({}));
    shut_down.matches = [("fsn".to_owned(), one(off))].into();
    let mut doubtful = gone(json!({}));
    doubtful.looked_up[0].answer = Arc::new(Existence::Unknown(Doubt::NoMatch {
        looked_for: "x".to_owned(),
    }));
    let mut unlisted = node("x");
    unlisted.matches = gone(json!({})).matches;
    let mut foreign = node("x");
    foreign.owner = NodeOwner::Unowned {
        why: "another cloud's".to_owned(),
        is_malformed: false,
    };
    for (case, node, expected) in [
        (
            "held",
            gone(hold),
            "the Node is kept: it is held by annotation",
        ),
        (
            "delete now",
            gone(now),
            "the Node is deleted: one proof is enough",
        ),
        (
            "its machine exists",
            exists,
            "the Node is kept, because its machine exists",
        ),
        (
            "shut down",
            shut_down,
            "the Node is kept with the shutdown taint",
        ),
        (
            "not proven",
            doubtful,
            "the Node is kept, because nothing is proven",
        ),
        ("Ready", unlisted, "the Node is kept, because it is Ready"),
        ("not ours", foreign, "nothing: no cloud here owns it"),
        (
            "no machine",
            tainted("x", InstanceMatch::None { lookalike: None }),
            "the Node keeps its taint until",
        ),
        (
            "new",
            tainted("x", one(machine("x"))),
            "the Node is initialised: what differs is written",
        ),
    ] {
        let next = story(node).next.what;
        assert!(next.starts_with(expected), "{case}: {next}");
    }
}

#[test]
fn deletions_stop_while_the_cloud_is_in_doubt() {
    let unseen = |name| NodeState {
        matches: gone(json!({})).matches,
        ..node(name)
    };
    let nodes = vec![
        unseen("a"),
        unseen("b"),
        unseen("c"),
        node("d"),
        gone(json!({})),
    ];
    let story = explain_node(&healthy(nodes), "x").unwrap();
    assert_eq!(met(&story), "yyy?yn??");
    assert!(
        story.next.what.contains("of 4 Ready Nodes"),
        "{}",
        story.next.what
    );
}

#[test]
fn without_a_leader_nothing_happens() {
    let mut snapshot = healthy(vec![gone(json!({}))]);
    snapshot.leases.as_mut().unwrap()[0].renewed = Some(ago(600));
    let next = explain_node(&snapshot, "x").unwrap().next;
    assert!(
        next.what
            .starts_with("nothing: no replica holds the lease ccm"),
        "{next:?}"
    );
    assert_eq!(next.when, None);
}

#[test]
fn what_a_leader_would_write_is_listed() {
    let label = json!({"metadata": {"labels": {"node.kubernetes.io/instance-type": "small"}}});
    let mut resized = machine("x");
    resized.instance_type = Some("large".to_owned());
    let mut node = node_with("x", label);
    node.matches = [("fsn".to_owned(), one(resized))].into();
    let story = story(node);
    let differs = &story.sections[3];
    assert_eq!(
        differs.lines,
        ["label node.kubernetes.io/instance-type: \"large\""]
    );
    assert_eq!(story.next.what, "what differs is written");
}

#[test]
fn a_service_says_what_happens_next() {
    let step = PlannedStep {
        text: "add target n".to_owned(),
        destructive: false,
        action: StepAction::Create,
        ineffective: false,
    };
    let mut differs = observed();
    differs.plan.steps.push(step.clone());
    let deleting = json!({"metadata": {
        "deletionTimestamp": ago(9).to_string(),
        "finalizers": ["service.kubernetes.io/load-balancer-cleanup"],
    }});
    let mut removed = service_with("x", deleting.clone());
    removed.removal = Some(Ok(cloudkeel_api::Plan { steps: vec![step] }));
    let mut unowned = service_with("x", json!({}));
    unowned.owner = None;
    let with = |observed| {
        let mut service = service_with("x", json!({}));
        service.observed = Some(observed);
        service
    };
    let denied = Trouble {
        kind: cloudkeel_api::ErrorKind::Denied,
        text: "create: forbidden".to_owned(),
    };
    for (case, service, expected, differs) in [
        ("fine", with(Ok(observed())), "nothing differs", &[][..]),
        (
            "differs",
            with(Ok(differs)),
            "what differs is repaired",
            &["+ add target n"],
        ),
        (
            "denied",
            with(Err(denied)),
            "it is tried again: create: forbidden",
            &[],
        ),
        ("not ours", unowned, "nothing: no cloud here serves it", &[]),
        (
            "goes",
            removed,
            "the load balancer is deleted, then",
            &["+ add target n"],
        ),
    ] {
        let mut snapshot = healthy(vec![]);
        snapshot.services = Ok(vec![service]);
        let story = explain_service(&snapshot, "default/x").unwrap();
        assert!(
            story.next.what.starts_with(expected),
            "{case}: {:?}",
            story.next
        );
        assert_eq!(story.sections[4].lines, differs, "{case}");
    }
    assert!(explain_service(&healthy(vec![]), "default/x").is_none());
}
