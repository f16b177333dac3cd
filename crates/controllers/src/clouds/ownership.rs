//! Which cloud does a Node belong to? Pure.

use std::sync::Arc;

use cloudkeel_api::{NodeFacts, ProviderId, Recognition, names};

use super::Cloud;
use crate::planted::Bug;

/// The answer.
#[derive(Clone)]
pub enum Owner {
    /// This cloud's, beyond doubt.
    Cloud(Arc<Cloud>),
    /// One of these, or none: it has neither an ID nor a hint, so they have to be asked, and exactly one may know
    /// it.
    Ask(Vec<Arc<Cloud>>),
    /// No cloud's here: no write, no call.
    Unowned {
        /// Why, for people.
        why: String,
        /// Its provider ID is none that a cloud issues: it cannot be read, has no scheme, or its own cloud does not
        /// recognise its form. As it can never be changed, the Node has to say why it stays as it is.
        is_malformed: bool,
    },
}

impl Owner {
    /// Whether the Node is this cloud's, beyond doubt.
    pub fn is(&self, cloud: &Cloud) -> bool {
        matches!(self, Self::Cloud(owner) if owner.is(cloud))
    }

    /// Whether the Node is this cloud's, or might be.
    pub fn may_be(&self, cloud: &Cloud) -> bool {
        match self {
            Self::Cloud(owner) => owner.is(cloud),
            Self::Ask(owners) => owners.iter().any(|owner| owner.is(cloud)),
            Self::Unowned { .. } => false,
        }
    }
}

/// Whether a label says that no controller here touches a Node.
pub(crate) fn is_unmanaged(node: &NodeFacts) -> bool {
    let label = node.labels.get(names::UNMANAGED_LABEL);
    label.is_some_and(|value| value == "true")
}

/// Who owns a Node: its provider ID decides, else the label, else a selector, else the clouds are to
/// be asked. The IDs of some clouds do not tell accounts apart; then label and selector choose among the
/// clouds that recognise the ID.
pub fn owner_of(node: &NodeFacts, clouds: &[Arc<Cloud>]) -> Owner {
    if is_unmanaged(node) {
        return unowned(format!("label {}=true", names::UNMANAGED_LABEL));
    }
    if let Some(id) = &node.provider_id {
        return by_id(id, node, clouds);
    }
    if let Some(name) = node.labels.get(names::CLOUD_LABEL) {
        return match clouds.iter().find(|cloud| &cloud.name == name) {
            Some(cloud) => Owner::Cloud(Arc::clone(cloud)),
            None => unowned(format!(
                "label {}={name} names no cloud here",
                names::CLOUD_LABEL
            )),
        };
    }
    let selected: Vec<_> = clouds.iter().filter(|cloud| selects(cloud, node)).collect();
    match selected.as_slice() {
        [cloud] => Owner::Cloud(Arc::clone(cloud)),
        [] => ask(clouds
            .iter()
            .filter(|cloud| cloud.selector.is_none() && may_own(cloud, node))),
        several => ask(several.iter().copied()),
    }
}

/// Whether nothing about a Node without an ID says that it is not this cloud's.
fn may_own(cloud: &Cloud, node: &NodeFacts) -> bool {
    let recognition = cloud.provider().recognize_node(node);
    matches!(recognition, None | Some(Recognition::Ours))
}

fn selects(cloud: &Cloud, node: &NodeFacts) -> bool {
    let selector = cloud.selector.as_ref();
    selector.is_some_and(|selector| selector.matches(&node.labels))
}

fn by_id(id: &ProviderId, node: &NodeFacts, clouds: &[Arc<Cloud>]) -> Owner {
    if let Err(error) = id.check() {
        return malformed(error.to_string());
    }
    let mut other = unowned(format!("{id} belongs to no cloud here"));
    let mut ours = Vec::new();
    for cloud in clouds {
        let recognition = cloud.provider().recognize_node(node);
        match recognition.unwrap_or(Recognition::Foreign) {
            Recognition::Ours => ours.push(cloud),
            Recognition::OtherAccount { why } => other = unowned(format!("{id}: {why}")),
            Recognition::Malformed { why } => other = malformed(format!("{id}: {why}")),
            Recognition::Foreign if Bug::TouchForeignNodes.is_planted() => ours.push(cloud),
            Recognition::Foreign => {}
        }
    }
    match ours.as_slice() {
        [] if id.scheme().is_none() => {
            malformed(format!("the provider ID {:?} names no cloud", id.as_str()))
        }
        [] => other,
        [cloud] => Owner::Cloud(Arc::clone(cloud)),
        several => match meant_by_labels(node, several) {
            Some(cloud) => Owner::Cloud(Arc::clone(cloud)),
            None => ask(several.iter().copied()),
        },
    }
}

/// The one of these clouds that the labels of a Node point at.
fn meant_by_labels<'a>(node: &NodeFacts, clouds: &[&'a Arc<Cloud>]) -> Option<&'a Arc<Cloud>> {
    let name = node.labels.get(names::CLOUD_LABEL);
    let named = clouds.iter().find(|cloud| Some(&cloud.name) == name);
    let mut selecting = clouds.iter().filter(|cloud| selects(cloud, node));
    let selected = selecting.next().filter(|_| selecting.next().is_none());
    named.or(selected).copied()
}

/// The cloud that a label or a selector gives a Node to whose ID is of a scheme that no cloud here knows, such as `k3s://`.
/// The Node is still no cloud's: nothing is written to it, and it is never deleted. It may be a target by its address.
pub(crate) fn given_to<'a>(node: &NodeFacts, clouds: &'a [Arc<Cloud>]) -> Option<&'a Arc<Cloud>> {
    let id = node.provider_id.as_ref()?;
    id.scheme()?;
    let is_foreign = |cloud: &Arc<Cloud>| {
        let recognition = cloud.provider().recognize_node(node);
        matches!(recognition, None | Some(Recognition::Foreign))
    };
    if id.check().is_err() || is_unmanaged(node) || !clouds.iter().all(is_foreign) {
        return None;
    }
    let all: Vec<_> = clouds.iter().collect();
    meant_by_labels(node, &all)
}

/// Why the cloud that the labels of a Node point at does not know its ID, if that is another account's: its credential may be
/// the wrong one.
pub(crate) fn labels_contradicted(node: &NodeFacts, clouds: &[Arc<Cloud>]) -> Option<String> {
    if node.provider_id.is_none() || is_unmanaged(node) {
        return None;
    }
    let all: Vec<_> = clouds.iter().collect();
    let cloud = meant_by_labels(node, &all)?;
    match cloud.provider().recognize_node(node)? {
        Recognition::OtherAccount { why } => Some(format!(
            "by its labels it is of cloud {}, but {why}",
            cloud.name
        )),
        Recognition::Ours | Recognition::Foreign | Recognition::Malformed { .. } => None,
    }
}

fn ask<'a>(clouds: impl Iterator<Item = &'a Arc<Cloud>>) -> Owner {
    let clouds: Vec<_> = clouds.cloned().collect();
    if clouds.is_empty() {
        return unowned("no cloud here selects it".to_owned());
    }
    Owner::Ask(clouds)
}

const fn unowned(why: String) -> Owner {
    let is_malformed = false;
    Owner::Unowned { why, is_malformed }
}

const fn malformed(why: String) -> Owner {
    let is_malformed = true;
    Owner::Unowned { why, is_malformed }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{CloudProvider, SystemClock};

    use super::*;

    /// Knows IDs of the form `<kind>://<account>/…`.
    struct Account(&'static str, &'static str);

    impl CloudProvider for Account {
        fn name(&self) -> &str {
            self.0
        }
        fn recognize(&self, id: &ProviderId) -> Recognition {
            match (id.scheme(), id.rest().split_once('/')) {
                (Some(scheme), _) if scheme != self.0 => Recognition::Foreign,
                (Some(_), Some((account, _))) if account == self.1 => Recognition::Ours,
                (Some(_), Some((account, _))) => Recognition::OtherAccount {
                    why: format!("account {account} is not {}", self.1),
                },
                _ => Recognition::Malformed {
                    why: "no account".into(),
                },
            }
        }
    }

    fn cloud(
        name: &str,
        kind: &'static str,
        account: &'static str,
        selector: Option<&str>,
    ) -> Arc<Cloud> {
        let selector = selector.map(|text| text.parse().unwrap());
        Cloud::new(
            name,
            Arc::new(Account(kind, account)),
            selector,
            Arc::new(SystemClock),
        )
    }

    /// Leaves Nodes alone that a label takes out of its hands, and knows its own by another one.
    struct Labelled;

    impl CloudProvider for Labelled {
        fn name(&self) -> &'static str {
            "labelled"
        }
        fn recognize_node(&self, node: &NodeFacts) -> Option<Recognition> {
            match node.labels.get("managed").map(String::as_str) {
                Some("no") => Some(Recognition::Foreign),
                _ => node.provider_id.as_ref().map(|id| self.recognize(id)),
            }
        }
    }

    #[test]
    fn a_cloud_may_know_a_node_by_more_than_its_id() {
        let labelled: Arc<dyn CloudProvider> = Arc::new(Labelled);
        let clouds = [Cloud::new("l", labelled, None, Arc::new(SystemClock))];
        let unmanaged = ("managed", "no");
        for (case, node, expected) in [
            ("by ID", node(Some("labelled://1"), &[]), "l"),
            (
                "taken out by a label",
                node(Some("labelled://1"), &[unmanaged]),
                "unowned: labelled://1 belongs to no cloud here",
            ),
            ("no ID", node(None, &[]), "ask l"),
            (
                "no ID, taken out by a label",
                node(None, &[unmanaged]),
                "unowned: no cloud here selects it",
            ),
        ] {
            assert_eq!(answer(&node, &clouds), expected, "{case}");
        }
    }

    fn clouds() -> Vec<Arc<Cloud>> {
        vec![
            cloud("fsn", "hcloud", "p1", Some("cloud=hetzner")),
            cloud("dc1", "vsphere", "vc", None),
            cloud("dc2", "vsphere", "vc", None),
        ]
    }

    fn node(id: Option<&str>, labels: &[(&str, &str)]) -> NodeFacts {
        NodeFacts {
            provider_id: id.map(|id| id.parse().unwrap()),
            labels: labels
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            ..NodeFacts::default()
        }
    }

    /// The answer in short.
    fn answer(node: &NodeFacts, clouds: &[Arc<Cloud>]) -> String {
        match owner_of(node, clouds) {
            Owner::Cloud(cloud) => cloud.name.clone(),
            Owner::Ask(clouds) => {
                let names: Vec<_> = clouds.iter().map(|cloud| cloud.name.as_str()).collect();
                format!("ask {}", names.join(" "))
            }
            Owner::Unowned {
                why,
                is_malformed: true,
            } => format!("malformed: {why}"),
            Owner::Unowned { why, .. } => format!("unowned: {why}"),
        }
    }

    #[test]
    fn id_then_label_then_selector_then_asking() {
        let unmanaged = (names::UNMANAGED_LABEL, "true");
        for (case, node, expected) in [
            ("by id", node(Some("hcloud://p1/1"), &[]), "fsn"),
            (
                "id wins over label",
                node(Some("hcloud://p1/1"), &[(names::CLOUD_LABEL, "dc1")]),
                "fsn",
            ),
            (
                "other account",
                node(Some("hcloud://p2/1"), &[]),
                "unowned: hcloud://p2/1: account p2 is not p1",
            ),
            (
                "foreign",
                node(Some("aws:///z/i-1"), &[]),
                "unowned: aws:///z/i-1 belongs to no cloud here",
            ),
            (
                "malformed",
                node(Some("hcloud://"), &[]),
                "malformed: hcloud://: no account",
            ),
            (
                "no scheme",
                node(Some("i-0abc"), &[]),
                "malformed: the provider ID \"i-0abc\" names no cloud",
            ),
            (
                "unreadable, whatever cloud is named",
                node(Some("hcloud://p1/1 2"), &[(names::CLOUD_LABEL, "fsn")]),
                "malformed: the provider ID \"hcloud://p1/1 2\" contains white space or control characters",
            ),
            (
                "unreadable, but unmanaged",
                node(Some("hcloud://p1/1 2"), &[unmanaged]),
                "unowned: label cloudkeel.dev/unmanaged=true",
            ),
            (
                "two accounts claim the id",
                node(Some("vsphere://vc/1"), &[]),
                "ask dc1 dc2",
            ),
            (
                "by label",
                node(None, &[(names::CLOUD_LABEL, "dc1")]),
                "dc1",
            ),
            (
                "unknown label",
                node(None, &[(names::CLOUD_LABEL, "x")]),
                "unowned: label cloudkeel.dev/cloud=x names no cloud here",
            ),
            ("by selector", node(None, &[("cloud", "hetzner")]), "fsn"),
            ("nothing known", node(None, &[]), "ask dc1 dc2"),
            (
                "unmanaged",
                node(Some("hcloud://p1/1"), &[unmanaged]),
                "unowned: label cloudkeel.dev/unmanaged=true",
            ),
            (
                "unmanaged=false",
                node(Some("hcloud://p1/1"), &[(names::UNMANAGED_LABEL, "false")]),
                "fsn",
            ),
        ] {
            assert_eq!(answer(&node, &clouds()), expected, "{case}");
        }
    }

    #[test]
    fn of_several_accounts_that_recognise_an_id_labels_choose() {
        let accounts = [
            cloud("dc1", "vsphere", "vc", Some("rack=one")),
            cloud("dc2", "vsphere", "vc", Some("rack in (two,both)")),
            cloud("dc3", "vsphere", "vc", Some("rack=both")),
            cloud("fsn", "hcloud", "p1", None),
        ];
        for (case, label, expected) in [
            ("by label", (names::CLOUD_LABEL, "dc2"), "dc2"),
            ("by selector", ("rack", "one"), "dc1"),
            ("two selectors", ("rack", "both"), "ask dc1 dc2 dc3"),
            (
                "a cloud that does not recognise it",
                (names::CLOUD_LABEL, "fsn"),
                "ask dc1 dc2 dc3",
            ),
            ("no label", ("other", "x"), "ask dc1 dc2 dc3"),
        ] {
            let node = node(Some("vsphere://vc/1"), &[label]);
            assert_eq!(answer(&node, &accounts), expected, "{case}");
        }
    }

    #[test]
    fn a_lone_cloud_still_has_to_recognise_a_node_without_id() {
        let lone = [cloud("dc1", "vsphere", "vc", None)];
        assert_eq!(answer(&node(None, &[]), &lone), "ask dc1");
        let selective = [cloud("fsn", "hcloud", "p1", Some("cloud=hetzner"))];
        assert_eq!(
            answer(&node(None, &[]), &selective),
            "unowned: no cloud here selects it"
        );
    }
}
