//! The tag sync and the public access firewall.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BackgroundContext, BackgroundController, CloudError, CloudProvider as _, MetadataChanges,
    MetadataWriter, NodeFacts, NodeFeed, Protocol, ServiceFacts, ServiceFeed, ServicePort,
    ServiceRef, ServiceType, Shared, TrafficPolicy,
};
use cloudkeel_emulator_digitalocean::{Fault, Operation};
use cloudkeel_provider_digitalocean::{DigitalOceanProvider, FirewallSettings};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::lab::{ID, Lab, PREFIX, settle, spec};

/// Services that a test changes.
#[derive(Default)]
struct Feed {
    services: Mutex<Vec<ServiceFacts>>,
    changed: Notify,
}

impl Feed {
    fn set(&self, services: Vec<ServiceFacts>) {
        *self.services.lock().unwrap() = services;
        self.changed.notify_one();
    }
}

#[async_trait]
impl ServiceFeed for Feed {
    fn snapshot(&self) -> Vec<ServiceFacts> {
        self.services.lock().unwrap().clone()
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Neither Nodes nor writes: these controllers need none.
struct Nothing;

#[async_trait]
impl NodeFeed for Nothing {
    fn snapshot(&self) -> Vec<Shared<NodeFacts>> {
        Vec::new()
    }

    async fn changed(&self) {
        std::future::pending::<()>().await;
    }
}

#[async_trait]
impl MetadataWriter for Nothing {
    async fn label_node(&self, _: &NodeFacts, _: &MetadataChanges) -> Result<(), CloudError> {
        panic!("nothing is written to Nodes")
    }

    async fn annotate_node(&self, _: &NodeFacts, _: &MetadataChanges) -> Result<(), CloudError> {
        panic!("nothing is written to Nodes")
    }

    async fn annotate_service(
        &self,
        _: &ServiceRef,
        _: &MetadataChanges,
    ) -> Result<(), CloudError> {
        panic!("nothing is written to Services")
    }
}

/// A controller that runs until this is dropped.
struct Running {
    feed: Arc<Feed>,
    task: tokio::task::JoinHandle<Result<(), CloudError>>,
}

impl Running {
    fn start(provider: &DigitalOceanProvider, name: &str, services: Vec<ServiceFacts>) -> Self {
        let all = provider.background_controllers();
        let mut named = all.into_iter().filter(|it| it.name() == name);
        let controller: Arc<dyn BackgroundController> = named.next().unwrap();
        let feed = Arc::new(Feed::default());
        feed.set(services);
        let context = BackgroundContext {
            nodes: Arc::new(Nothing),
            services: Arc::<Feed>::clone(&feed),
            writer: Arc::new(Nothing),
            stop: CancellationToken::new(),
        };
        let task = tokio::spawn(async move { controller.run(context).await });
        Self { feed, task }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn a_while() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn service(name: &str, service_type: ServiceType, port: u16) -> ServiceFacts {
    ServiceFacts {
        service: ServiceRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: crate::lab::UID.to_owned(),
        },
        service_type,
        class: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        ports: vec![ServicePort {
            name: None,
            protocol: Protocol::Tcp,
            port,
            node_port: Some(30_000 + port),
        }],
        traffic_policy: TrafficPolicy::Cluster,
        health_check_node_port: None,
        source_ranges: Vec::new(),
        ingress: Vec::new(),
        is_deleting: false,
    }
}

fn annotated(mut service: ServiceFacts, annotations: &[(&str, &str)]) -> ServiceFacts {
    let pairs = annotations.iter();
    let pairs = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    service.annotations.extend(pairs);
    service
}

async fn firewalled(lab: &Lab) -> DigitalOceanProvider {
    lab.provider_with(|config| {
        config.firewall = Some(FirewallSettings {
            name: "public-access".to_owned(),
            tags: vec!["workers".to_owned()],
        });
    })
    .await
}

/// The rules of the one firewall, as `protocol port source`.
fn rules(lab: &Lab) -> Vec<String> {
    let firewall = lab.cloud.firewalls().remove(0);
    let rules = firewall.inbound_rules.iter().map(|rule| {
        let text = |key: &str| rule[key].as_str().unwrap().to_owned();
        let balancers = rule["sources"]["load_balancer_uids"].as_array();
        let source = balancers.map_or("anywhere", |ids| ids[0].as_str().unwrap());
        format!("{} {} {source}", text("protocol"), text("ports"))
    });
    rules.collect()
}

#[tokio::test(start_paused = true)]
async fn the_firewall_opens_ports_of_services_and_follows_them() {
    let lab = Lab::new(0);
    let provider = firewalled(&lab).await;
    let plain = service("a", ServiceType::NodePort, 80);
    let balanced = service("b", ServiceType::LoadBalancer, 443);
    let running = Running::start(
        &provider,
        "digitalocean-firewall",
        vec![plain, balanced.clone()],
    );
    a_while().await;
    let expected = [
        "tcp 10256 anywhere",
        "tcp 30080 anywhere",
        "tcp 443 anywhere",
    ];
    assert_eq!(rules(&lab), expected);
    let firewall = lab.cloud.firewalls().remove(0);
    assert_eq!(
        (firewall.outbound_rules.len(), &firewall.tags[..]),
        (3, &["workers".to_owned()][..])
    );
    let known = annotated(balanced, &[(ID, "lb-1")]);
    running.feed.set(vec![known.clone()]);
    a_while().await;
    assert_eq!(rules(&lab), ["tcp 10256 lb-1", "tcp 443 anywhere"]);
    assert_eq!(lab.mutations(), 2, "created, then changed");
    running.feed.set(vec![known]);
    a_while().await;
    assert_eq!(lab.mutations(), 2, "nothing differs");
}

#[tokio::test(start_paused = true)]
async fn services_that_open_nothing_are_left_out() {
    let managed = "kubernetes.digitalocean.com/firewall-managed";
    let (kind, network) = (format!("{PREFIX}type"), format!("{PREFIX}network"));
    let balanced = || service("b", ServiceType::LoadBalancer, 443);
    let on_nodes = || service("a", ServiceType::NodePort, 80);
    for (case, service, expected) in [
        (
            "not managed",
            annotated(on_nodes(), &[(managed, "false")]),
            0,
        ),
        ("unreadable", annotated(on_nodes(), &[(managed, "x")]), 1),
        (
            "inside the cluster",
            service("c", ServiceType::ClusterIp, 80),
            0,
        ),
        (
            "ends connections",
            annotated(balanced(), &[(&kind, "REGIONAL")]),
            0,
        ),
        (
            "internal",
            annotated(balanced(), &[(&network, "INTERNAL")]),
            0,
        ),
        ("unreadable type", annotated(balanced(), &[(&kind, "x")]), 2),
        ("passes through", balanced(), 2),
    ] {
        let lab = Lab::new(0);
        let provider = firewalled(&lab).await;
        let _running = Running::start(&provider, "digitalocean-firewall", vec![service]);
        a_while().await;
        assert_eq!(rules(&lab).len(), expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_client_does_to_the_firewall_is_undone_within_five_minutes() {
    let lab = Lab::new(0);
    let provider = firewalled(&lab).await;
    let services = vec![service("a", ServiceType::NodePort, 80)];
    let _running = Running::start(&provider, "digitalocean-firewall", services);
    a_while().await;
    lab.cloud.change_firewalls(|firewall| {
        firewall.inbound_rules.clear();
        firewall.droplet_ids.push(7);
    });
    tokio::time::sleep(Duration::from_mins(6)).await;
    assert_eq!(rules(&lab), ["tcp 30080 anywhere"]);
    assert_eq!(
        lab.cloud.firewalls()[0].droplet_ids,
        [7],
        "that is not ours to change"
    );
}

#[tokio::test(start_paused = true)]
async fn a_quiet_hour_of_the_firewall_costs_a_dozen_reads() {
    let lab = Lab::new(0);
    let provider = firewalled(&lab).await;
    let services = vec![service("a", ServiceType::NodePort, 80)];
    let _running = Running::start(&provider, "digitalocean-firewall", services);
    a_while().await;
    lab.cloud.reset_calls();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let calls = lab.cloud.calls();
    assert_eq!(
        (calls.mutations(), calls.of(Operation::GetFirewall)),
        (0, 12)
    );
    assert_eq!(calls.total(), 12);
}

#[tokio::test(start_paused = true)]
async fn the_tag_sync_tags_what_lacks_the_tag_in_one_call() {
    let lab = Lab::new(1);
    let untagged = lab.provider().await;
    let nodes = lab.nodes(&untagged).await;
    let mut desired = spec(&[80], &nodes);
    settle(&untagged, &mut desired).await;
    lab.cloud.add_load_balancer("foreign", &[]);
    let provider = lab
        .provider_with(|config| config.cluster_id = Some("prod".to_owned()))
        .await;
    let services = || vec![service("web", ServiceType::LoadBalancer, 80)];
    let running = Running::start(&provider, "digitalocean-tag-sync", services());
    a_while().await;
    let tagged = |name: &str| {
        let all = lab.cloud.load_balancers();
        let found = all.into_iter().find(|it| it.name.starts_with(name));
        found.unwrap().tags.contains(&"k8s:prod".to_owned())
    };
    assert!(tagged("a3f0") && !tagged("foreign"));
    // The tag was missing: refused, created, put on.
    assert_eq!(lab.mutations(), 3);
    lab.cloud.reset_calls();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let calls = lab.cloud.calls();
    assert_eq!(calls.mutations(), 0, "{calls:?}");
    assert!(
        (4..=5).contains(&calls.total()),
        "every quarter of an hour: {calls:?}"
    );
    drop(running);
    lab.cloud
        .faults()
        .once(Operation::ListLoadBalancers, Fault::status(403));
    let mut failing = Running::start(&provider, "digitalocean-tag-sync", services());
    let ended = (&mut failing.task).await.unwrap();
    assert!(ended.is_err(), "the manager starts it again");
}

#[tokio::test(start_paused = true)]
async fn the_tag_sync_leaves_what_is_tagged_for_another_service_alone() {
    let lab = Lab::new(1);
    let owner = "cloudkeel:u-9:c-9:b:shop".to_owned();
    let theirs = lab.cloud.add_load_balancer("theirs", &[owner]);
    let provider = lab
        .provider_with(|config| config.cluster_id = Some("prod".to_owned()))
        .await;
    let evil = service("web", ServiceType::LoadBalancer, 80);
    let evil = annotated(evil, &[(ID, &theirs)]);
    let _running = Running::start(&provider, "digitalocean-tag-sync", vec![evil]);
    a_while().await;
    assert!(lab.cloud.calls().total() > 0, "it has looked");
    assert_eq!(lab.mutations(), 0);
}
