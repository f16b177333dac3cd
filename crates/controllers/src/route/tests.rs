//! Which changes of Nodes are relevant, and that a cloud's `Retry-After` is honoured.

use std::sync::atomic::{AtomicU32, Ordering};

use cloudkeel_api::{
    CloudError, CloudProvider, CollectedEvents, ErrorKind, NodeAddress, NodeFacts, ProviderId,
    Recognition, Route, RouteChange, Routes, Shared, SystemClock,
};
use futures::stream;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;
use crate::runtime::{Cache, NodeWriter};
use crate::view::SlimNode;

/// Knows IDs of one scheme, and has routes.
struct Scheme(&'static str);

#[async_trait]
impl Routes for Scheme {
    async fn list(&self, _: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
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
        .map(|cloud| is_relevant(&change, cloud, &clouds))
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
    let rows: [(&str, Edit, [bool; 2]); 8] = [
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
            "paused",
            |node| {
                let paused = cloudkeel_api::names::PAUSED.name();
                node.facts.annotations.insert(paused.into(), "true".into());
            },
            [true, false],
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

/// Answers 429 with `Retry-After`, at a list or only at a change, and counts how often.
struct Throttling {
    at_lists: bool,
    asked: AtomicU32,
}

impl Throttling {
    const RETRY_AFTER: Duration = Duration::from_mins(2);

    fn throttle(&self) -> CloudError {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let retry_after = Some(Self::RETRY_AFTER);
        CloudError::new("x", ErrorKind::Throttled { retry_after }, "too many calls")
    }
}

#[async_trait]
impl Routes for Throttling {
    async fn list(&self, _: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        if self.at_lists {
            return Err(self.throttle());
        }
        Ok(Vec::new())
    }
    async fn apply(&self, _: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        vec![Err(self.throttle())]
    }
}

impl CloudProvider for Throttling {
    fn name(&self) -> &'static str {
        "one"
    }
    fn recognize(&self, _: &ProviderId) -> Recognition {
        Recognition::Ours
    }
    fn routes(&self) -> Option<&dyn Routes> {
        Some(self)
    }
}

/// A Node with this address, whose condition says already what it will have to.
fn shown(address: u32) -> SlimNode {
    serde_json::from_value(json!({
        "metadata": {"name": "n", "uid": "u"},
        "spec": {"providerID": "one://1", "podCIDRs": ["10.244.1.0/24"]},
        "status": {
            "addresses": [{"type": "InternalIP", "address": format!("10.0.0.{address}")}],
            "conditions": [
                {"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"},
            ],
        },
    }))
    .unwrap()
}

fn controller_of(provider: Arc<dyn CloudProvider>) -> Arc<RouteController> {
    let unreachable = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    let parts = RouteParts {
        nodes: Cache::new(),
        clouds: vec![Cloud::new("one", provider, None, Arc::new(SystemClock))],
        writer: NodeWriter::new(kube::Client::try_from(unreachable).unwrap()),
        events: Arc::new(CollectedEvents::default()),
        clock: Arc::new(SystemClock),
        observer: Arc::new(Unobserved),
        queue_observer: Arc::new(Unobserved),
    };
    let networks = vec!["10.244.0.0/16".parse().unwrap()];
    RouteController::new(parts, RouteSettings::new(networks))
}

/// The watch shows this.
async fn show(controller: &Arc<RouteController>, events: Vec<Event<SlimNode>>) {
    let events = stream::iter(events.into_iter().map(Ok));
    let (listeners, never) = ([controller.listener()], CancellationToken::new());
    let nodes = &controller.parts.nodes;
    nodes.follow(events, &listeners, &never).await;
}

fn first_list() -> Vec<Event<SlimNode>> {
    vec![Event::Init, Event::InitApply(shown(0)), Event::InitDone]
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_whatever_changes() {
    for at_lists in [true, false] {
        let asked = AtomicU32::new(0);
        let cloud = Arc::new(Throttling { at_lists, asked });
        let controller = controller_of(Arc::<Throttling>::clone(&cloud));
        let stop = CancellationToken::new();
        let _end = stop.clone().drop_guard();
        let running = Arc::clone(&controller);
        tokio::spawn(async move { running.run(stop).await });
        show(&controller, first_list()).await;
        for address in 1..=11 {
            tokio::time::sleep(Throttling::RETRY_AFTER / 12).await;
            show(&controller, vec![Event::Apply(shown(address))]).await;
        }
        let asked = || cloud.asked.load(Ordering::SeqCst);
        assert_eq!(asked(), 1, "at lists: {at_lists}");
        tokio::time::sleep(Throttling::RETRY_AFTER / 6).await;
        assert_eq!(asked(), 2, "at lists: {at_lists}");
    }
}

/// Says that another component creates routes, and counts how often.
#[derive(Default)]
struct ImplementedElsewhere(AtomicU32);

#[async_trait]
impl Routes for ImplementedElsewhere {
    async fn list(&self, _: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let kind = ErrorKind::ImplementedElsewhere;
        Err(CloudError::new("list routes", kind, "not here"))
    }
    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        panic!("must not be called with {changes:?}")
    }
}

impl CloudProvider for ImplementedElsewhere {
    fn name(&self) -> &'static str {
        "one"
    }
    fn recognize(&self, _: &ProviderId) -> Recognition {
        Recognition::Ours
    }
    fn routes(&self) -> Option<&dyn Routes> {
        Some(self)
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_whose_routes_another_component_creates_is_asked_once_per_resync() {
    let cloud = Arc::new(ImplementedElsewhere::default());
    let controller = controller_of(Arc::<ImplementedElsewhere>::clone(&cloud));
    let stop = CancellationToken::new();
    let _end = stop.clone().drop_guard();
    let running = Arc::clone(&controller);
    let running = tokio::spawn(async move { running.run(stop).await });
    show(&controller, first_list()).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(!running.is_finished(), "it works on");
    assert_eq!(cloud.0.load(Ordering::SeqCst), 1);
    tokio::time::sleep(RouteSettings::RESYNC.mul_f64(1.2)).await;
    assert_eq!(cloud.0.load(Ordering::SeqCst), 2);
}
