mod changes;
mod properties;

use std::sync::Arc;

use cloudkeel_api::{CloudProvider, ProviderId, Recognition, SystemClock};

use super::*;
use crate::service::fixtures::{ABLE, annotated, node, owner};
use crate::view::Readiness;
use crate::wellknown::UNINITIALIZED_TAINT;
use k8s_openapi::api::core::v1::Taint;

fn taint(key: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        value: None,
        effect: "NoSchedule".to_owned(),
        time_added: None,
    }
}

fn with(change: impl FnOnce(&mut NodeView)) -> NodeView {
    let mut node = node("b");
    change(&mut node);
    node
}

fn labelled(key: &str, value: &str) -> NodeView {
    with(|node| {
        node.facts.labels.insert(key.to_owned(), value.to_owned());
    })
}

/// A Node of these clouds.
fn candidate(node: &NodeView, owners: &[&str]) -> Candidate {
    Candidate {
        node: Arc::new(node.clone()),
        owners: owners.iter().map(ToString::to_string).collect(),
        given_to: None,
    }
}

const PLAIN: Features = Features {
    drain: false,
    targets_by_address: false,
    ..ABLE
};

const EVERY_NODE: Features = Features {
    every_node: true,
    ..ABLE
};

/// The targets among these Nodes of cloud `fsn`, in a word each.
fn chosen(nodes: &[NodeView], features: Features) -> Vec<String> {
    let owner = owner("fsn", true, None);
    let rules = TargetRules {
        owner: &owner,
        features,
        selector: None,
    };
    let candidates: Vec<_> = nodes.iter().map(|node| candidate(node, &["fsn"])).collect();
    words(&choose(&candidates, &rules))
}

fn words(targets: &BTreeMap<String, Target>) -> Vec<String> {
    targets
        .iter()
        .map(|(name, target)| match (target.by, target.state) {
            (TargetBy::Machine, TargetState::Serving) => name.clone(),
            (TargetBy::Address, TargetState::Serving) => format!("{name} by address"),
            (_, TargetState::Draining) => format!("{name} draining"),
        })
        .collect()
}

#[test]
fn the_label_excludes_unless_it_says_false() {
    for (value, excluded) in [
        ("", true),
        ("true", true),
        ("foo", true),
        ("no", true),
        ("FaLsE", true),
        ("false", false),
        ("False", false),
        ("FALSE", false),
        ("f", false),
        ("F", false),
        ("0", false),
    ] {
        assert_eq!(
            is_excluded(&labelled(EXCLUDE_LABEL, value)),
            excluded,
            "{value:?}"
        );
    }
    assert!(!is_excluded(&node("b")));
}

#[test]
fn only_deletion_exclusion_and_the_autoscaler_take_a_node_out() {
    for (case, other, is_target) in [
        ("plain", node("b"), true),
        (
            "not ready",
            with(|n| n.readiness = Readiness::NotReady),
            true,
        ),
        ("unknown", with(|n| n.readiness = Readiness::Unknown), true),
        (
            "uninitialised",
            with(|n| n.taints = vec![taint(UNINITIALIZED_TAINT)]),
            true,
        ),
        (
            "cordoned",
            with(|n| n.taints = vec![taint("node.kubernetes.io/unschedulable")]),
            true,
        ),
        (
            "control plane",
            labelled("node-role.kubernetes.io/control-plane", ""),
            true,
        ),
        ("unmanaged", labelled(names::UNMANAGED_LABEL, "true"), true),
        ("no address yet", with(|n| n.facts.addresses.clear()), true),
        ("no ID yet", with(|n| n.facts.provider_id = None), true),
        (
            "karpenter, without draining",
            with(|n| n.taints = vec![taint(KARPENTER_TAINT)]),
            true,
        ),
        ("excluded", labelled(EXCLUDE_LABEL, "true"), false),
        ("included", labelled(EXCLUDE_LABEL, "false"), true),
        ("being deleted", with(|n| n.deleting = true), false),
        (
            "autoscaler",
            with(|n| n.taints = vec![taint(AUTOSCALER_TAINT)]),
            false,
        ),
    ] {
        let expected = if is_target { vec!["a", "b"] } else { vec!["a"] };
        assert_eq!(chosen(&[node("a"), other], PLAIN), expected, "{case}");
    }
}

#[test]
fn a_leaving_node_drains_where_the_cloud_can() {
    for (case, leaving) in [
        ("deletion", with(|n| n.deleting = true)),
        (
            "autoscaler",
            with(|n| n.taints = vec![taint(AUTOSCALER_TAINT)]),
        ),
        (
            "karpenter",
            with(|n| n.taints = vec![taint(KARPENTER_TAINT)]),
        ),
    ] {
        let nodes = [node("a"), leaving];
        assert_eq!(chosen(&nodes, ABLE), ["a", "b draining"], "{case}");
    }
    let excluded = with(|n| {
        n.deleting = true;
        n.facts.labels.insert(EXCLUDE_LABEL.into(), String::new());
    });
    assert_eq!(
        chosen(&[node("a"), excluded], ABLE),
        ["a"],
        "excluded is out at once"
    );
}

#[test]
fn the_last_nodes_serve_until_they_are_really_gone() {
    let leaving = with(|n| n.taints = vec![taint(AUTOSCALER_TAINT)]);
    for features in [PLAIN, ABLE] {
        assert_eq!(chosen(std::slice::from_ref(&leaving), features), ["b"]);
    }
    assert!(chosen(&[labelled(EXCLUDE_LABEL, "")], ABLE).is_empty());
    assert!(chosen(&[], ABLE).is_empty());
}

#[test]
fn a_node_that_waits_for_its_machine_does_not_stand_in_for_one_that_leaves() {
    let leaving = with(|n| n.taints = vec![taint(AUTOSCALER_TAINT)]);
    let mut newcomer = node("new");
    newcomer.facts.provider_id = None;
    let nodes = [leaving, newcomer];
    assert_eq!(chosen(&nodes, ABLE), ["b", "new"], "none is cut off");
    let mut nodes = nodes.to_vec();
    nodes.push(node("a"));
    assert_eq!(chosen(&nodes, ABLE), ["a", "b draining", "new"]);
}

#[test]
fn own_nodes_are_reached_as_machines_and_others_by_address_if_asked() {
    let named = |clouds: &[&str], by| ServiceOwner {
        is_own_config: false,
        target_clouds: clouds.iter().map(ToString::to_string).collect(),
        by,
        ..owner("fsn", true, None)
    };
    let all = [node("own"), node("theirs"), node("nobodys"), node("unsure")];
    let owners = [vec!["fsn"], vec!["dc1"], vec![], vec!["fsn", "dc1"]];
    for (case, owner, features, expected) in [
        (
            "own only",
            named(&[], TargetBy::Machine),
            ABLE,
            vec!["own", "unsure"],
        ),
        (
            "own by address",
            named(&[], TargetBy::Address),
            ABLE,
            vec!["own by address", "unsure by address"],
        ),
        (
            "both",
            named(&["fsn", "dc1"], TargetBy::Machine),
            ABLE,
            vec!["own", "theirs by address", "unsure"],
        ),
        (
            "the other only",
            named(&["dc1"], TargetBy::Machine),
            ABLE,
            vec!["theirs by address"],
        ),
        (
            "every node",
            named(&[], TargetBy::Machine),
            EVERY_NODE,
            vec!["nobodys by address", "own", "unsure"],
        ),
        (
            "every node, but only of these",
            named(&["fsn"], TargetBy::Machine),
            EVERY_NODE,
            vec!["own", "unsure"],
        ),
        (
            "balancers that know no addresses",
            named(&["fsn", "dc1"], TargetBy::Machine),
            PLAIN,
            vec!["own", "unsure"],
        ),
    ] {
        let candidates: Vec<_> = all
            .iter()
            .zip(&owners)
            .map(|(node, owners)| candidate(node, owners))
            .collect();
        let rules = TargetRules {
            owner: &owner,
            features,
            selector: None,
        };
        assert_eq!(words(&choose(&candidates, &rules)), expected, "{case}");
    }
}

#[test]
fn a_node_without_an_id_that_two_clouds_may_own_waits_until_that_is_settled() {
    let newcomer = with(|n| n.facts.provider_id = None);
    let owner = owner("fsn", true, None);
    let rules = TargetRules {
        owner: &owner,
        features: ABLE,
        selector: None,
    };
    for (owners, expected) in [(vec!["fsn", "dc1"], 0), (vec!["fsn"], 1), (vec!["dc1"], 0)] {
        let candidate = candidate(&newcomer, &owners);
        assert_eq!(choose([&candidate], &rules).len(), expected);
    }
}

#[test]
fn a_selector_on_the_service_narrows_the_choice() {
    let key = names::LB_NODE_SELECTOR.name();
    let selector = |text| node_selector(&annotated(&[(key, text)]), Ok(None));
    let pool = |value| labelled("pool", value);
    let owner = owner("fsn", true, None);
    for (text, node, expected) in [
        ("pool=web", pool("web"), 1),
        ("pool=web", pool("db"), 0),
        ("pool=web", node("b"), 0),
        ("!pool", node("b"), 1),
        ("pool in (web,db)", pool("db"), 1),
        ("", node("b"), 1),
    ] {
        let rules = TargetRules {
            owner: &owner,
            features: ABLE,
            selector: selector(text).unwrap(),
        };
        let candidate = candidate(&node, &["fsn"]);
        assert_eq!(choose([&candidate], &rules).len(), expected, "{text:?}");
    }
    assert_eq!(node_selector(&annotated(&[]), Ok(None)), Ok(None));
    assert_eq!(
        selector("pool=web=x").unwrap_err().to_string(),
        "cloudkeel.dev/lb-node-selector: \"pool=web=x\": expected a label selector such as \
         `pool=web,!gpu,zone in (a,b)` in place of \"pool=web=x\""
    );
}

#[test]
fn the_selector_of_the_cloud_wins_over_the_neutral_one() {
    let read = |text: &str| text.parse::<LabelSelector>().unwrap();
    let bad = || Problem::unexpected("cloud.example/node-selector", "a b", "a selector");
    let neutral = annotated(&[(names::LB_NODE_SELECTOR.name(), "pool=web")]);
    let neither = annotated(&[]);
    for (case, service, own, expected) in [
        (
            "only neutral",
            &neutral,
            Ok(None),
            Ok(Some(read("pool=web"))),
        ),
        (
            "both",
            &neutral,
            Ok(Some(read("edge"))),
            Ok(Some(read("edge"))),
        ),
        ("all", &neutral, Ok(Some(read(""))), Ok(Some(read("")))),
        (
            "only its own",
            &neither,
            Ok(Some(read("edge"))),
            Ok(Some(read("edge"))),
        ),
        ("nonsense", &neutral, Err(bad()), Err(bad())),
        ("neither", &neither, Ok(None), Ok(None)),
    ] {
        assert_eq!(node_selector(service, own), expected, "{case}");
    }
}

/// Knows IDs that begin with its name.
struct Scheme(&'static str);

impl CloudProvider for Scheme {
    fn name(&self) -> &str {
        self.0
    }
    fn recognize(&self, id: &ProviderId) -> Recognition {
        if id.scheme() == Some(self.0) {
            Recognition::Ours
        } else {
            Recognition::Foreign
        }
    }
}

#[test]
fn whose_a_node_is_does_not_depend_on_the_unmanaged_label() {
    let cloud =
        |name, scheme| Cloud::new(name, Arc::new(Scheme(scheme)), None, Arc::new(SystemClock));
    let clouds = [cloud("fsn", "hcloud"), cloud("dc1", "vsphere")];
    for (case, node, expected) in [
        ("by id", node("b"), vec!["fsn"]),
        (
            "unmanaged",
            labelled(names::UNMANAGED_LABEL, "true"),
            vec!["fsn"],
        ),
        (
            "new",
            with(|n| n.facts.provider_id = None),
            vec!["fsn", "dc1"],
        ),
        (
            "foreign",
            with(|n| n.facts.provider_id = "aws:///z/i-1".parse().ok()),
            vec![],
        ),
        (
            "labelled",
            with(|n| {
                n.facts.provider_id = None;
                n.facts
                    .labels
                    .insert(names::CLOUD_LABEL.into(), "dc1".into());
            }),
            vec!["dc1"],
        ),
    ] {
        let candidate = Candidate::new(Arc::new(node), &clouds);
        assert_eq!(candidate.owners, expected, "{case}");
    }
}

#[test]
fn a_node_with_an_id_of_another_scheme_is_a_target_only_if_a_label_gives_it_to_the_cloud() {
    struct Hetzner;
    impl CloudProvider for Hetzner {
        fn name(&self) -> &'static str {
            "hcloud"
        }
        fn recognize(&self, id: &ProviderId) -> Recognition {
            match id.scheme() {
                Some("hcloud") => Recognition::Ours,
                _ => Recognition::Foreign,
            }
        }
    }
    let provider: Arc<dyn CloudProvider> = Arc::new(Hetzner);
    let selector = Some("site=fsn".parse().unwrap());
    let clouds = [Cloud::new("fsn", provider, selector, Arc::new(SystemClock))];
    let k3s = |key: &str, value: &str| {
        let mut node = labelled(key, value);
        node.facts.provider_id = "k3s://b".parse().ok();
        node
    };
    let unmanaged = {
        let mut node = k3s("site", "fsn");
        node.facts.provider_id = "k3s:// b".parse().ok();
        node
    };
    for (case, node, features, by) in [
        ("no label", k3s("a", "b"), ABLE, None),
        (
            "named",
            k3s(names::CLOUD_LABEL, "fsn"),
            ABLE,
            Some(TargetBy::Address),
        ),
        (
            "selected",
            k3s("site", "fsn"),
            ABLE,
            Some(TargetBy::Address),
        ),
        ("another cloud", k3s(names::CLOUD_LABEL, "x"), ABLE, None),
        ("machines only", k3s("site", "fsn"), PLAIN, None),
        ("unreadable", unmanaged, ABLE, None),
    ] {
        let owner = owner("fsn", true, None);
        let rules = TargetRules {
            owner: &owner,
            features,
            selector: None,
        };
        let candidate = Candidate::new(Arc::new(node), &clouds);
        assert!(candidate.owners.is_empty(), "{case}: it is no cloud's");
        assert_eq!(rules.reach(&candidate), by, "{case}");
    }
}
