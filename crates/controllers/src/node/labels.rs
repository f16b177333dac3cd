//! Which labels a Node gets. Pure.

use std::collections::BTreeMap;

use cloudkeel_api::{Instance, LabelProblem, NodeFacts, check_label};

use crate::wellknown::{INSTANCE_TYPE, INSTANCE_TYPE_BETA, REGION, REGION_BETA, ZONE, ZONE_BETA};

/// Labels to set, by key.
pub type LabelChanges = BTreeMap<String, String>;

/// A label of the cloud that is not written, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declined {
    /// Its key belongs to Kubernetes.
    Reserved {
        /// The key.
        key: String,
    },
    /// The Node has it already, with another value.
    Taken {
        /// The key.
        key: String,
        /// What the cloud says.
        offered: String,
        /// What the Node says.
        kept: String,
    },
    /// The API server would refuse it, and everything that is written with it.
    Invalid {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The rule that it breaks.
        problem: LabelProblem,
    },
}

/// Separates labels that Kubernetes allows from those that it does not. Whatever comes from a cloud goes through here.
pub fn allowed(changes: LabelChanges) -> (LabelChanges, Vec<Declined>) {
    let (mut good, mut declined) = (LabelChanges::new(), Vec::new());
    for (key, value) in changes {
        match check_label(&key, &value) {
            Ok(()) => {
                good.insert(key, value);
            }
            Err(problem) => declined.push(Declined::Invalid {
                key,
                value,
                problem,
            }),
        }
    }
    (good, declined)
}

/// Type and topology under their old and their new names.
const TYPE: [&str; 2] = [INSTANCE_TYPE_BETA, INSTANCE_TYPE];
const OF_ZONE: [&str; 2] = [ZONE_BETA, ZONE];
const OF_REGION: [&str; 2] = [REGION_BETA, REGION];

/// Topology and type under both their names. Empty values leave a label alone.
fn topology(instance: &Instance) -> impl Iterator<Item = (&'static str, &String)> {
    let labels = [
        (TYPE, &instance.instance_type),
        (OF_ZONE, &instance.zone),
        (OF_REGION, &instance.region),
    ];
    labels.into_iter().flat_map(|(keys, value)| {
        let value = value.iter().filter(|value| !value.is_empty());
        value.flat_map(move |value| keys.map(|key| (key, value)))
    })
}

/// The labels that a Node lacks at its initialisation. Topology and type overwrite; additional
/// labels never do, and never touch a key of Kubernetes.
pub fn at_initialisation(instance: &Instance, node: &NodeFacts) -> (LabelChanges, Vec<Declined>) {
    let mut changes: LabelChanges = topology(instance)
        .filter(|(key, value)| node.labels.get(*key) != Some(*value))
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    let mut declined = Vec::new();
    for (key, value) in &instance.labels {
        match node.labels.get(key) {
            _ if is_reserved(key) => declined.push(Declined::Reserved { key: key.clone() }),
            Some(kept) if kept != value => declined.push(Declined::Taken {
                key: key.clone(),
                offered: value.clone(),
                kept: kept.clone(),
            }),
            Some(_) => {}
            None => {
                changes.insert(key.clone(), value.clone());
            }
        }
    }
    let (changes, invalid) = allowed(changes);
    declined.extend(invalid);
    (changes, declined)
}

/// The labels of an instance that a Node has not at all, with the deprecated ones.
pub fn missing(instance: &Instance, node: &NodeFacts) -> LabelChanges {
    let (mut changes, _) = at_initialisation(instance, node);
    changes.retain(|key, _| !node.labels.contains_key(key));
    changes
}

/// Whether a key lies in `kubernetes.io` or `k8s.io`, or in a domain under them.
fn is_reserved(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    ["kubernetes.io", "k8s.io"].iter().any(|reserved| {
        domain
            .strip_suffix(reserved)
            .is_some_and(|above| above.is_empty() || above.ends_with('.'))
    })
}

/// Keeps the stable names equal to the deprecated ones, which upstream treats as the source of
/// truth: hand-edits of the stable label are reverted.
pub fn reconcile(node: &NodeFacts) -> LabelChanges {
    let labels = [TYPE, OF_ZONE, OF_REGION].into_iter();
    let changes = labels.filter_map(|[source, copy]| {
        let value = node.labels.get(source)?;
        (node.labels.get(copy) != Some(value)).then(|| (copy.to_owned(), value.clone()))
    });
    changes.collect()
}

/// The type labels of a machine that was resized. Only those that the Node has are followed: one
/// that a person removed stays removed.
pub fn resized(instance: &Instance, node: &NodeFacts) -> LabelChanges {
    let is_type = |(key, _, _): &(String, String, String)| TYPE.contains(&key.as_str());
    let changes = differences(instance, node).filter(is_type);
    changes.map(|(key, _, now)| (key, now)).collect()
}

/// The additional labels that follow the cloud. A Node has one of ours if it has had the cloud's value, which `agreed`
/// remembers; what another client set or removed stays so.
pub fn followed(instance: &Instance, node: &NodeFacts, agreed: &mut LabelChanges) -> LabelChanges {
    let mut changes = LabelChanges::new();
    let offered = instance.labels.iter().filter(|(key, _)| !is_reserved(key));
    for (key, now) in offered {
        let has = node.labels.get(key);
        if has == Some(now) {
            agreed.insert(key.clone(), now.clone());
        } else if has.is_some() && agreed.get(key) == has {
            changes.insert(key.clone(), now.clone());
        } else {
            agreed.remove(key);
        }
    }
    changes
}

/// Zone and region labels that no longer say what the cloud says: key, Node's value, cloud's value.
/// Volumes depend on them, so they are reported, and changed only on request.
pub fn moved(instance: &Instance, node: &NodeFacts) -> Vec<(String, String, String)> {
    let is_moved = |(key, _, _): &(String, String, String)| !TYPE.contains(&key.as_str());
    differences(instance, node).filter(is_moved).collect()
}

/// Labels of type and topology that the Node has with another value: key, Node's value, cloud's value.
fn differences(
    instance: &Instance,
    node: &NodeFacts,
) -> impl Iterator<Item = (String, String, String)> {
    topology(instance).filter_map(|(key, now)| {
        let was = node.labels.get(key).filter(|was| *was != now)?;
        Some((key.to_owned(), was.clone(), now.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    fn node(pairs: &[(&str, &str)]) -> NodeFacts {
        NodeFacts {
            labels: labels(pairs),
            ..NodeFacts::default()
        }
    }

    fn instance(kind: &str, zone: &str, more: &[(&str, &str)]) -> Instance {
        let mut instance = Instance::new("local://p/1".parse().unwrap(), "n");
        instance.instance_type = Some(kind.to_owned());
        instance.zone = Some(zone.to_owned());
        instance.labels = labels(more);
        instance
    }

    #[test]
    fn topology_and_type_get_both_names_and_overwrite() {
        let (changes, declined) =
            at_initialisation(&instance("cx22", "", &[]), &node(&[(INSTANCE_TYPE, "old")]));
        assert_eq!(
            changes,
            labels(&[(INSTANCE_TYPE, "cx22"), (INSTANCE_TYPE_BETA, "cx22")])
        );
        assert_eq!(declined, []);
    }

    #[test]
    fn labels_that_are_right_already_are_not_written() {
        let has = node(&[
            (INSTANCE_TYPE, "t"),
            (INSTANCE_TYPE_BETA, "t"),
            (ZONE, "z"),
            (ZONE_BETA, "z"),
        ]);
        assert!(
            at_initialisation(&instance("t", "z", &[]), &has)
                .0
                .is_empty()
        );
    }

    #[test]
    fn additional_labels_respect_reserved_domains_and_what_is_there() {
        let offered = [
            ("kubernetes.io/x", "1"),
            ("node.kubernetes.io/x", "1"),
            ("k8s.io/x", "1"),
            ("sub.k8s.io/x", "1"),
            ("k8snio/x", "1"),
            ("mykubernetes.io/x", "1"),
            ("plain", "1"),
            ("same", "1"),
            ("taken", "1"),
        ];
        let has = node(&[("same", "1"), ("taken", "2")]);
        let (changes, declined) = at_initialisation(&instance("", "", &offered), &has);
        assert_eq!(
            changes,
            labels(&[
                ("k8snio/x", "1"),
                ("mykubernetes.io/x", "1"),
                ("plain", "1")
            ])
        );
        assert_eq!(declined.len(), 5, "{declined:?}");
        assert!(declined.contains(&Declined::Taken {
            key: "taken".into(),
            offered: "1".into(),
            kept: "2".into(),
        }));
    }

    #[test]
    fn labels_that_kubernetes_does_not_allow_are_declined_one_by_one() {
        let offered = [("good", "1"), ("bad key", "1"), ("bad-value", "a b")];
        let (changes, declined) = at_initialisation(&instance("t", "rack 7", &offered), &node(&[]));
        assert_eq!(
            changes,
            labels(&[
                (INSTANCE_TYPE, "t"),
                (INSTANCE_TYPE_BETA, "t"),
                ("good", "1"),
            ])
        );
        let invalid = |key: &str, value: &str, problem| Declined::Invalid {
            key: key.to_owned(),
            value: value.to_owned(),
            problem,
        };
        assert_eq!(
            declined,
            [
                invalid("bad key", "1", LabelProblem::Key),
                invalid("bad-value", "a b", LabelProblem::Value),
                invalid(ZONE_BETA, "rack 7", LabelProblem::Value),
                invalid(ZONE, "rack 7", LabelProblem::Value),
            ]
        );
    }

    #[test]
    fn a_bad_value_that_the_node_would_not_get_anyway_is_not_declined() {
        let bad = instance("t", "", &[("taken", "a b"), ("kubernetes.io/x", "a b")]);
        let (_, declined) = at_initialisation(&bad, &node(&[("taken", "1")]));
        let is_invalid = |declined: &Declined| matches!(declined, Declined::Invalid { .. });
        assert!(!declined.iter().any(is_invalid), "{declined:?}");
    }

    #[test]
    fn the_deprecated_label_is_the_source_of_truth() {
        for (case, has, expected) in [
            ("missing", &[(ZONE_BETA, "a")][..], &[(ZONE, "a")][..]),
            ("equal", &[(ZONE_BETA, "a"), (ZONE, "a")], &[]),
            (
                "different",
                &[(ZONE_BETA, "a"), (ZONE, "b")],
                &[(ZONE, "a")],
            ),
            ("no source", &[(ZONE, "b")], &[]),
        ] {
            assert_eq!(reconcile(&node(has)), labels(expected), "{case}");
        }
    }

    #[test]
    fn a_resized_machine_changes_only_labels_that_are_there() {
        let now = instance("big", "z", &[]);
        let has = node(&[(INSTANCE_TYPE, "small")]);
        assert_eq!(resized(&now, &has), labels(&[(INSTANCE_TYPE, "big")]));
        assert!(resized(&now, &node(&[])).is_empty());
        assert!(resized(&now, &node(&[(INSTANCE_TYPE, "big")])).is_empty());
    }

    #[test]
    fn a_moved_machine_is_reported() {
        let now = instance("t", "z2", &[]);
        let has = node(&[(ZONE, "z1"), (ZONE_BETA, "z2")]);
        assert_eq!(moved(&now, &has), [(ZONE.into(), "z1".into(), "z2".into())]);
    }

    #[test]
    fn additional_labels_follow_the_cloud_unless_another_client_has_changed_them() {
        let now = instance("t", "", &[("class", "b"), ("kubernetes.io/x", "b")]);
        for (case, has, agreed, expected) in [
            (
                "it had the cloud's value",
                &[("class", "a")][..],
                &[("class", "a")][..],
                &[("class", "b")][..],
            ),
            ("after a start", &[("class", "a")], &[], &[]),
            (
                "set by another client",
                &[("class", "x")],
                &[("class", "a")],
                &[],
            ),
            ("removed by another client", &[], &[("class", "a")], &[]),
            ("right already", &[("class", "b")], &[], &[]),
            (
                "reserved",
                &[("kubernetes.io/x", "a")],
                &[("kubernetes.io/x", "a")],
                &[],
            ),
        ] {
            let mut agreed = labels(agreed);
            let changes = followed(&now, &node(has), &mut agreed);
            assert_eq!(changes, labels(expected), "{case}");
        }
        let mut agreed = LabelChanges::new();
        followed(&now, &node(&[("class", "b")]), &mut agreed);
        assert_eq!(agreed, labels(&[("class", "b")]));
    }
}
