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

fn node(change: impl FnOnce(&mut NodeView)) -> Option<Arc<NodeView>> {
    let mut node = NodeView::default();
    node.facts.name = "n".into();
    node.facts.uid = "u".into();
    node.facts.provider_id = "one://1".parse().ok();
    node.facts.addresses = vec![NodeAddress::internal("10.0.0.1".parse().unwrap())];
    node.facts.pod_cidrs = vec!["10.244.1.0/24".parse().unwrap()];
    change(&mut node);
    Some(Arc::new(node))
}

#[test]
fn only_changes_that_could_change_routes_count() {
    let same = || node(|_| {});
    let without_network = |version: &'static str| {
        node(|node| {
            node.facts.pod_cidrs.clear();
            node.resource_version = version.into();
        })
    };
    let other_cloud = || node(|node| node.facts.provider_id = "two://1".parse().ok());
    for (case, before, after, one, two) in [
        ("new", None, same(), true, false),
        ("gone", same(), None, true, false),
        (
            "new without a network",
            None,
            without_network("1"),
            false,
            false,
        ),
        (
            "gone without a network",
            without_network("1"),
            None,
            false,
            false,
        ),
        (
            "nothing of ours changed",
            same(),
            node(|node| {
                node.resource_version = "2".into();
                node.network_unavailable = Some(("False".into(), "RouteCreated".into()));
                node.facts.annotations.insert("a".into(), "b".into());
            }),
            false,
            false,
        ),
        (
            "it got a network",
            without_network("1"),
            same(),
            true,
            false,
        ),
        (
            "another network",
            same(),
            node(|node| node.facts.pod_cidrs[0] = "10.244.2.0/24".parse().unwrap()),
            true,
            false,
        ),
        (
            "another address",
            same(),
            node(|node| node.facts.addresses.clear()),
            true,
            false,
        ),
        (
            "recreated under the same name",
            same(),
            node(|node| node.facts.uid = "v".into()),
            true,
            false,
        ),
        (
            "another machine",
            same(),
            node(|node| node.facts.provider_id = "one://2".parse().ok()),
            true,
            false,
        ),
        ("another cloud", same(), other_cloud(), true, true),
        (
            "not ours any more",
            same(),
            node(|node| {
                let unmanaged = cloudkeel_api::names::UNMANAGED_LABEL;
                node.facts.labels.insert(unmanaged.into(), "true".into());
            }),
            true,
            false,
        ),
    ] {
        let clouds = ["one", "two"].map(|scheme| {
            Cloud::new(
                scheme,
                Arc::new(Scheme(scheme)),
                None,
                Arc::new(SystemClock),
            )
        });
        let change = Change { before, after };
        let counts = clouds
            .each_ref()
            .map(|cloud| matters(&change, cloud, &clouds));
        assert_eq!(counts, [one, two], "{case}");
    }
}
