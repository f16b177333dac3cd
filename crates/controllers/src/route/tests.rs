//! Which changes of Nodes count.

use cloudkeel_api::{
    CloudError, CloudProvider, NodeAddress, NodeFacts, ProviderId, Recognition, Route, RouteChange,
    Routes, SystemClock,
};

use super::*;

/// Knows IDs of one scheme, and has routes.
struct Scheme(&'static str);

#[async_trait]
impl Routes for Scheme {
    async fn list(&self, _: &[NodeFacts]) -> Result<Vec<Route>, CloudError> {
        Ok(Vec::new())
    }
    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        changes.iter().map(|_| Ok(())).collect()
    }
}

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
    fn routes(&self) -> Option<&dyn Routes> {
        Some(self)
    }
}

fn node(change: impl FnOnce(&mut NodeView)) -> NodeView {
    let mut node = NodeView::default();
    node.facts.name = "n".into();
    node.facts.uid = "u".into();
    node.facts.provider_id = "one://1".parse().ok();
    node.facts.addresses = vec![NodeAddress::internal("10.0.0.1".parse().unwrap())];
    node.facts.pod_cidrs = vec!["10.244.1.0/24".parse().unwrap()];
    change(&mut node);
    node
}

/// Whether a change counts for the first cloud and for the second.
fn counts(before: Option<NodeView>, after: Option<NodeView>) -> [bool; 2] {
    let clouds = ["one", "two"].map(|scheme| {
        Cloud::new(
            scheme,
            Arc::new(Scheme(scheme)),
            None,
            Arc::new(SystemClock),
        )
    });
    let change = Change {
        before: before.map(Arc::new),
        after: after.map(Arc::new),
    };
    clouds
        .each_ref()
        .map(|cloud| matters(&change, cloud, &clouds))
}

#[test]
fn a_node_counts_when_it_comes_and_goes_if_it_has_a_network() {
    let with = || Some(node(|_| {}));
    let without = || Some(node(|node| node.facts.pod_cidrs.clear()));
    for (case, before, after, expected) in [
        ("new", None, with(), true),
        ("gone", with(), None, true),
        ("new without a network", None, without(), false),
        ("gone without a network", without(), None, false),
        ("it got a network", without(), with(), true),
        ("it has none still", without(), without(), false),
    ] {
        assert_eq!(counts(before, after), [expected, false], "{case}");
    }
}

type Edit = fn(&mut NodeView);

#[test]
fn a_change_counts_if_it_could_change_routes() {
    let rows: [(&str, Edit, [bool; 2]); 7] = [
        (
            "nothing that matters",
            |node| {
                node.resource_version = "2".into();
                node.network_unavailable = Some(("False".into(), "RouteCreated".into()));
                node.facts.annotations.insert("a".into(), "b".into());
            },
            [false, false],
        ),
        (
            "another network",
            |node| node.facts.pod_cidrs = vec!["10.244.2.0/24".parse().unwrap()],
            [true, false],
        ),
        (
            "another address",
            |node| node.facts.addresses.clear(),
            [true, false],
        ),
        (
            "recreated under the same name",
            |node| node.facts.uid = "v".into(),
            [true, false],
        ),
        (
            "another machine",
            |node| node.facts.provider_id = "one://2".parse().ok(),
            [true, false],
        ),
        (
            "another cloud",
            |node| node.facts.provider_id = "two://1".parse().ok(),
            [true, true],
        ),
        (
            "not ours any more",
            |node| {
                let unmanaged = cloudkeel_api::names::UNMANAGED_LABEL;
                node.facts.labels.insert(unmanaged.into(), "true".into());
            },
            [true, false],
        ),
    ];
    for (case, edit, expected) in rows {
        let counts = counts(Some(node(|_| {})), Some(node(edit)));
        assert_eq!(counts, expected, "{case}");
    }
}
