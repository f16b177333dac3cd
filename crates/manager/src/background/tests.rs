use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BackgroundContext, BackgroundController, CloudError, CloudProvider, ErrorKind, Ingress, IpMode,
    MetadataChanges, ServiceType, SystemClock, names,
};
use cloudkeel_controllers::runtime::Cache;
use cloudkeel_controllers::view::{NodeView, ServiceView};
use futures::stream;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Client;
use kube::runtime::watcher::Event;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::metrics::{BuildInfo, Format, Metrics};

/// What a run does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Panic,
    Fail,
    Return,
    /// Until it is stopped.
    Work,
    /// However much it is asked to stop.
    Hang,
    /// The same, with a task of its own that does stop.
    SpawnAndHang,
}

/// A cloud with one controller, which does one thing after the other, and works when it is through.
#[derive(Clone)]
struct Scripted {
    name: &'static str,
    acts: Arc<Mutex<VecDeque<Act>>>,
    log: Arc<Mutex<Vec<(String, Duration)>>>,
    began: Instant,
}

impl Scripted {
    fn new(name: &'static str, acts: &[Act], log: &Self) -> Self {
        Self {
            name,
            acts: Arc::new(Mutex::new(acts.iter().copied().collect())),
            ..log.clone()
        }
    }

    fn first(acts: &[Act]) -> Self {
        Self {
            name: "first",
            acts: Arc::new(Mutex::new(acts.iter().copied().collect())),
            log: Arc::default(),
            began: Instant::now(),
        }
    }

    fn log(&self, what: &str) {
        let line = (format!("{} {what}", self.name), self.began.elapsed());
        self.log.lock().unwrap().push(line);
    }

    /// What happened, and at which second.
    fn logged(&self) -> Vec<(String, u64)> {
        let log = self.log.lock().unwrap();
        let line = |(what, at): &(String, Duration)| (what.clone(), at.as_secs());
        log.iter().map(line).collect()
    }
}

impl CloudProvider for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn background_controllers(&self) -> Vec<Arc<dyn BackgroundController>> {
        if self.name == "bare" {
            return Vec::new();
        }
        vec![Arc::new(self.clone())]
    }
}

#[async_trait]
impl BackgroundController for Scripted {
    fn name(&self) -> &'static str {
        "tagging"
    }

    fn on_by_default(&self) -> bool {
        true
    }

    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError> {
        self.log("starts");
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Work);
        match act {
            Act::Panic => panic!("as scripted"),
            Act::Fail => Err(CloudError::new("tag", ErrorKind::Denied, "no")),
            Act::Return => Ok(()),
            Act::Hang => std::future::pending().await,
            Act::SpawnAndHang => {
                let (logged, stop) = (self.clone(), context.stop);
                tokio::spawn(async move {
                    stop.cancelled().await;
                    logged.log("stops a task");
                });
                std::future::pending().await
            }
            Act::Work => {
                context.stop.cancelled().await;
                self.log("stops");
                Ok(())
            }
        }
    }
}

fn node(name: &str, provider_id: &str) -> Node {
    let mut node = Node::default();
    node.metadata.name = Some(name.into());
    node.metadata.uid = Some(format!("uid of {name}"));
    node.metadata.labels = Some(BTreeMap::from([("kept".to_owned(), "1".to_owned())]));
    let spec = node.spec.get_or_insert_default();
    spec.provider_id = Some(provider_id.into());
    node
}

fn paused(mut node: Node) -> Node {
    let paused = (names::PAUSED.name().to_owned(), "true".to_owned());
    node.metadata.annotations = Some(BTreeMap::from([paused]));
    node
}

struct Lab {
    cloud: Arc<Cloud>,
    host: Host,
    metrics: Metrics,
}

async fn lab(provider: &Scripted) -> Lab {
    let cloud = Cloud::new("c", Arc::new(provider.clone()), None, Arc::new(SystemClock));
    let nodes = Cache::<NodeView>::new();
    let events = [
        Event::Init,
        Event::InitApply(node("own", "scripted://1").into()),
        Event::InitApply(paused(node("paused", "scripted://2")).into()),
        Event::InitApply(node("foreign", "other://1").into()),
        Event::InitDone,
    ];
    let never = CancellationToken::new();
    let events = stream::iter(events.map(Ok));
    nodes.follow(events, &[], &never).await;
    let services = Cache::<ServiceView>::new();
    let events = [
        Event::Init,
        Event::InitApply(service("web", "LoadBalancer")),
        Event::InitApply(service("admin", "NodePort")),
        Event::InitDone,
    ];
    let events = stream::iter(events.map(Ok));
    services.follow(events, &[], &never).await;
    let metrics = Metrics::new(&BuildInfo::of_version("0.0.0"), jiff::Timestamp::UNIX_EPOCH);
    // A write to a missing object is reported to the caller.
    let nowhere = || {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        Client::try_from(config).unwrap()
    };
    let items = vec!["*".to_owned()];
    let selection = ControllerSelection::new(&items, &["tagging"]).unwrap();
    let clouds = [Arc::clone(&cloud)];
    let provided = selected(&selection, &clouds).remove(0);
    let parts = HostParts {
        clouds: &clouds,
        nodes: &nodes,
        services: &services,
        node_client: nowhere(),
        service_client: nowhere(),
        metrics: &metrics.background,
    };
    let host = Host::new(provided, &parts);
    Lab {
        cloud,
        host,
        metrics,
    }
}

fn service(name: &str, service_type: &str) -> Service {
    let service = serde_json::json!({
        "metadata": {"namespace": "shop", "name": name, "uid": format!("uid of {name}"),
                     "annotations": {"kept": "1"}},
        "spec": {"type": service_type,
                 "ports": [{"name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP"},
                           {"port": 0, "protocol": "TCP"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "Proxy"}]}},
    });
    serde_json::from_value(service).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_asks_for_services_sees_all_and_annotates_them() {
    let provider = Scripted::first(&[]);
    let lab = lab(&provider).await;
    let context = lab.host.context(CancellationToken::new());
    let snapshot = context.services.snapshot();
    let names: Vec<_> = snapshot.iter().map(|it| it.service.to_string()).collect();
    assert_eq!(names, ["shop/admin", "shop/web"]);
    let web = &snapshot[1];
    assert_eq!(web.service_type, ServiceType::LoadBalancer);
    assert_eq!(web.ports.len(), 1, "a port that cannot be is left out");
    assert_eq!(
        (web.ports[0].port, web.ports[0].node_port),
        (80, Some(30080))
    );
    let (ip, mode) = ([192, 0, 2, 1].into(), IpMode::Proxy);
    assert_eq!(web.ingress, [Ingress::Ip { ip, mode }]);
    let set = |key: &str, value: Option<&str>| {
        MetadataChanges::from([(key.to_owned(), value.map(str::to_owned))])
    };
    let mut successor = web.service.clone();
    successor.uid = "another".to_owned();
    for (case, service, change, expected) in [
        ("there already", &web.service, set("kept", Some("1")), None),
        ("not there anyway", &web.service, set("absent", None), None),
        (
            "a bad key",
            &web.service,
            set("a b", Some("2")),
            Some(ErrorKind::Invalid),
        ),
        (
            "recreated",
            &successor,
            set("new", Some("2")),
            Some(ErrorKind::NotFound),
        ),
        (
            "a change, to an API server that is not there",
            &web.service,
            set("new", Some("2")),
            Some(ErrorKind::Unavailable),
        ),
    ] {
        let written = context.writer.annotate_service(service, &change).await;
        assert_eq!(written.err().map(|error| error.kind()), expected, "{case}");
    }
    let own = context.nodes.snapshot().remove(0);
    let changed = set("new", Some("any value, also one that no label may have"));
    let written = context.writer.annotate_node(&own, &changed).await;
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Unavailable);
}

fn lines(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    let line = |(what, at): &(&str, u64)| ((*what).to_owned(), *at);
    expected.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_fails_in_any_way_is_started_again_after_a_growing_pause() {
    let provider = Scripted::first(&[Act::Panic, Act::Fail, Act::Return]);
    let lab = lab(&provider).await;
    let stop = CancellationToken::new();
    let run = lab.host.run(stop.clone());
    let ask_to_stop = async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        stop.cancel();
    };
    futures::join!(run, ask_to_stop);
    assert_eq!(
        provider.logged(),
        lines(&[
            ("first starts", 0),
            ("first starts", 1),
            ("first starts", 3),
            ("first starts", 7),
            ("first stops", 60),
        ])
    );
    let exposed = lab.metrics.expose(Format::Plain).unwrap();
    let failures =
        "cloudkeel_background_controller_failures_total{cloud=\"c\",controller=\"tagging\"} 3";
    assert!(exposed.contains(failures), "{exposed}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_stops_also_the_tasks_that_the_controller_began() {
    let provider = Scripted::first(&[Act::SpawnAndHang]);
    let lab = lab(&provider).await;
    {
        let running = lab.host.run(CancellationToken::new());
        tokio::pin!(running);
        assert!(futures::poll!(&mut running).is_pending());
        // Dropped, as everything is when the fence closes.
    }
    tokio::task::yield_now().await;
    let expected = [("first starts", 0), ("first stops a task", 0)];
    assert_eq!(provider.logged(), lines(&expected));
}

#[tokio::test(start_paused = true)]
async fn after_a_replacement_the_new_providers_controller_runs() {
    let first = Scripted::first(&[Act::Hang]);
    let second = Scripted::new("second", &[], &first);
    let bare = Scripted::new("bare", &[], &first);
    let third = Scripted::new("third", &[], &first);
    let lab = lab(&first).await;
    let stop = CancellationToken::new();
    let run = lab.host.run(stop.clone());
    let replace = async {
        for provider in [second, bare, third] {
            tokio::time::sleep(Duration::from_secs(20)).await;
            lab.cloud.cell.replace(Arc::new(provider));
        }
        tokio::time::sleep(Duration::from_secs(20)).await;
        stop.cancel();
    };
    futures::join!(run, replace);
    assert_eq!(
        first.logged(),
        lines(&[
            ("first starts", 0),
            // The first one did not stop, and got ten seconds.
            ("second starts", 30),
            ("second stops", 40),
            ("third starts", 60),
            ("third stops", 80),
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn a_controller_sees_and_labels_only_the_nodes_of_its_cloud() {
    let provider = Scripted::first(&[]);
    let lab = lab(&provider).await;
    let BackgroundContext { nodes, writer, .. } = lab.host.context(CancellationToken::new());
    let mut snapshot = nodes.snapshot();
    let names: Vec<_> = snapshot.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["own", "paused"]);
    let own = snapshot.remove(0);
    let paused = (*snapshot.remove(0)).clone();
    let set = |key: &str, value: Option<&str>| {
        BTreeMap::from([(key.to_owned(), value.map(str::to_owned))])
    };
    for (case, unchanged) in [
        ("there already", set("kept", Some("1"))),
        ("not there anyway", set("absent", None)),
    ] {
        let written = writer.label_node(&own, &unchanged).await;
        assert!(written.is_ok(), "{case} costs no write: {written:?}");
    }
    for (case, invalid) in [
        ("a bad value", set("new", Some("a b"))),
        ("a bad key", set("a b", Some("2"))),
    ] {
        let refused = writer.label_node(&own, &invalid).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid, "{case}");
    }
    let mut mixed = set("new", Some("2"));
    mixed.extend(set("bad", Some("a b")));
    let unreachable = writer.label_node(&own, &mixed).await.unwrap_err();
    assert_eq!(unreachable.kind(), ErrorKind::Unavailable, "the good one");
    let unreachable = writer
        .label_node(&own, &set("new", Some("2")))
        .await
        .unwrap_err();
    assert_eq!(unreachable.kind(), ErrorKind::Unavailable);
    let mut foreign = own.clone();
    foreign.name = "foreign".to_owned();
    foreign.uid = "uid of foreign".to_owned();
    let mut successor = own.clone();
    successor.uid = "another".to_owned();
    for (case, node) in [
        ("foreign", (*foreign).clone()),
        ("recreated", (*successor).clone()),
        ("paused", paused),
    ] {
        let refused = writer.label_node(&node, &set("new", Some("2"))).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound, "{case}");
    }
}
