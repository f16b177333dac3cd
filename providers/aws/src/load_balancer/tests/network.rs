//! What goes wrong for network balancers, and what several of them share.

use std::collections::BTreeSet;

use super::*;
use crate::client::Call;

/// The plan for a network balancer that was right for the Service with these annotations.
fn network_texts(
    annotations: &[(&str, &str)],
    change: impl FnOnce(&mut Observed, &mut LoadBalancerSpec),
) -> Vec<String> {
    let mut spec = service(&[&[NLB], annotations].concat());
    let mut have = settled_network(&service(&[NLB]));
    change(&mut have, &mut spec);
    let desired = Desired::of(&spec, &facts()).unwrap();
    let steps = nlb_plan::plan(&desired, &have, &facts()).unwrap();
    steps.iter().map(ToString::to_string).collect()
}

/// Annotations, how the state differs, and what is said.
type Unmet<'a> = (
    &'a [(&'a str, &'a str)],
    fn(&mut Observed, &mut LoadBalancerSpec),
    &'a str,
);

#[test]
fn what_cannot_be_checked_or_reached_is_named_and_closes_no_node() {
    let no_node_port = |_: &mut Observed, spec: &mut LoadBalancerSpec| {
        spec.listeners[0].node_port = None;
    };
    let nothing = |_: &mut Observed, _: &mut LoadBalancerSpec| {};
    let cases: [Unmet<'_>; 4] = [
        (
            &[("healthcheck-port", "http")],
            nothing,
            "healthcheck-port: \"http\": expected a port or `traffic-port`",
        ),
        (
            &[("healthcheck-protocol", "grpc")],
            nothing,
            "healthcheck-protocol: \"grpc\": expected `TCP`, `HTTP` or `HTTPS`",
        ),
        (
            &[("healthcheck-protocol", "SSL")],
            nothing,
            "expected `TCP`, `HTTP` or `HTTPS`",
        ),
        (
            &[],
            no_node_port,
            "none has a node port: set allocateLoadBalancerNodePorts to true",
        ),
    ];
    for (annotations, change, expected) in cases {
        assert_eq!(network_texts(annotations, change), [""; 0], "{expected}");
        let mut spec = service(&[&[NLB], annotations].concat());
        let mut have = settled_network(&service(&[NLB]));
        change(&mut have, &mut spec);
        have.desired = Some(Desired::of(&spec, &facts()).unwrap());
        let unmet = report(DesiredState::Present(&spec), &have).unmet;
        assert!(unmet[0].message.contains(expected), "{unmet:?}");
        have.network = None;
        let desired = have.desired.clone().unwrap();
        let refused = nlb_plan::plan(&desired, &have, &facts()).unwrap_err();
        assert!(refused.message().contains(expected), "{refused}");
    }
    // A classic one checks by SSL, too; what it cannot read is not the node port.
    let desired = |annotations: &[_]| Desired::of(&service(annotations), &facts()).unwrap();
    assert!(desired(&[("healthcheck-protocol", "ssl")]).wrong.is_empty());
    assert!(desired(&[("healthcheck-port", "http")]).concerns(desired::Part::Health));
}

#[test]
fn narrowed_ranges_are_closed_while_a_node_is_not_found() {
    let texts = network_texts(&[], |have, spec| {
        have.targets.wanted.unresolved = [("node-2".to_owned(), "it is new".to_owned())].into();
        let rules = have.groups[0].rules.clone();
        have.groups
            .push(group("sg-perhaps-of-node-2", "more", rules));
        spec.source_ranges = vec!["10.0.0.0/8".parse().unwrap()];
    });
    // Of the group that the new Node may be in, nothing is known.
    assert!(
        texts.iter().all(|text| text.ends_with(" sg-nodes")),
        "{texts:?}"
    );
    assert!(
        texts.iter().any(|text| text.starts_with("remove ")),
        "{texts:?}"
    );
}

/// The rule by which Nodes let the balancer of this name check the port that all of them share.
fn shared_check(name: &str) -> (crate::wire::Rule, Option<String>) {
    let subnet = "10.0.0.0/24".parse().unwrap();
    let rule = groups::port_rule("tcp", 10_256, 10_256, &subnet);
    (rule, Some(format!("kubernetes.io/rule/nlb/health={name}")))
}

#[test]
fn a_check_that_balancers_share_stays_open_until_the_last_of_them_goes() {
    let shared = [NLB, ("healthcheck-port", "10256")];
    let client = |have: &mut Observed| {
        let rule = groups::port_rule("tcp", 30_080, 30_080, &"0.0.0.0/0".parse().unwrap());
        let about = format!("kubernetes.io/rule/nlb/client={}", name());
        have.groups[0].rules = [(rule, Some(about))].into();
    };
    for (case, opened_by, others, expected) in [
        ("it is alone", name(), vec![], 2),
        ("another uses it", name(), vec![10_256], 1),
        (
            "another opened it and is gone",
            "another".to_owned(),
            vec![],
            2,
        ),
        (
            "another opened it and uses it",
            "another".to_owned(),
            vec![10_256],
            1,
        ),
    ] {
        let mut have = settled_network(&service(&shared));
        client(&mut have);
        have.groups[0].rules.extend([shared_check(&opened_by)]);
        have.checked_by_others = Some(others.into_iter().collect());
        let steps = nlb_remove::remove(&have, &name(), &facts());
        let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
        let closing = format!("remove {expected} rules from security group sg-nodes");
        assert!(texts.contains(&closing), "{case}: {texts:?}");
    }
    // A change of the port asks who else uses the old one, before it is closed.
    let mut have = settled_network(&service(&[NLB]));
    assert!(!nlb_plan::needs_others(&have, &facts()));
    have.groups[0].rules.extend([shared_check(&name())]);
    assert!(nlb_plan::needs_others(&have, &facts()));
    have.checked_by_others = Some([10_256].into());
    let desired = have.desired.clone().unwrap();
    assert_eq!(nlb_plan::plan(&desired, &have, &facts()).unwrap(), []);
}

#[test]
fn a_group_that_was_left_over_goes_before_one_of_its_name_is_made() {
    let spec = service(&[
        NLB,
        ("healthcheck-path", "/up"),
        ("healthcheck-protocol", "http"),
    ]);
    let mut have = settled_network(&service(&[NLB]));
    have.desired = Some(Desired::of(&spec, &facts()).unwrap());
    assert!(
        nlb_plan::needs_others(&have, &facts()),
        "its port gets another group"
    );
    let mut loose = have.network.as_ref().unwrap().groups[0].group.clone();
    (loose.arn, loose.balancers) = ("arn:loose".to_owned(), BTreeSet::new());
    have.leftovers = vec![loose];
    let steps = nlb_plan::plan(have.desired.as_ref().unwrap(), &have, &facts()).unwrap();
    let actions = steps.iter().flat_map(|step| &step.calls);
    let actions: Vec<_> = actions.map(|call| call.action).collect();
    assert_eq!(actions[..2], ["DeleteTargetGroup", "CreateTargetGroup"]);
}

#[test]
fn a_tag_without_a_key_is_left_out() {
    let tags = "team=web,=x,,public";
    let desired = Desired::of(&service(&[("additional-resource-tags", tags)]), &facts()).unwrap();
    let expected = [
        ("kubernetes.io/cluster/x", "owned"),
        ("kubernetes.io/service-name", "default/web"),
        ("public", ""),
        ("team", "web"),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(desired.tags, expected.into());
}

#[test]
fn a_balancer_that_lacks_capacity_still_serves() {
    for (state, is_published) in [
        ("active_impaired", true),
        ("provisioning", true),
        ("failed", false),
    ] {
        let spec = service(&[NLB]);
        let mut have = settled_network(&spec);
        have.network.as_mut().unwrap().balancer.state = state.to_owned();
        let status = report(DesiredState::Present(&spec), &have).status;
        assert_eq!(!status.ingress.is_empty(), is_published, "{state}");
    }
}

#[test]
fn a_group_of_its_own_that_the_service_names_is_kept() {
    let steps = texts(&[("security-groups", "sg-7,sg-own")], |_, _| {});
    assert!(
        steps.iter().all(|step| !step.starts_with("delete")),
        "{steps:?}"
    );
}

#[test]
fn what_is_released_loses_its_tags_twenty_at_a_time_and_the_balancer_last() {
    let mut have = settled_network(&service(&[NLB]));
    let network = have.network.as_mut().unwrap();
    let group = network.groups[0].clone();
    network.groups = vec![group; 20];
    let steps = nlb_remove::release(&have, &facts());
    let arns = |call: &Call| {
        let arns = call.params.iter();
        arns.filter(|(name, _)| name.starts_with("ResourceArns"))
            .map(|(_, arn)| arn.clone())
            .collect::<Vec<_>>()
    };
    let calls: Vec<_> = steps[0].calls.iter().map(arns).collect();
    assert_eq!(
        (calls[0].len(), calls[1].clone()),
        (20, vec!["arn:lb".to_owned()])
    );
}
