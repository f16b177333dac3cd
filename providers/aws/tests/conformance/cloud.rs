//! An account of moto under the kit.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    AddressKind, BuildError, CloudProvider, HealthCheck, NodeAddress, Protocol, ProviderContext,
    ProxyProtocol, TargetState, VolumePlace,
};
use cloudkeel_provider_aws::{AwsProvider, BalancerType};
use cloudkeel_testkit::conformance::{
    ActualBalancer, ActualInstance, ActualListener, ActualRoute, ActualState, ActualVolume, Change,
    FaultInjector, Interposed, Opening, OrNotPlayable as _, OwnerLabels, Resource, Samples, Stop,
    TestCloud, health_check, networks,
};
use serde_json::{Value, json};

use crate::support::Moto;

pub(crate) struct AwsTestCloud {
    moto: Moto,
    kind: BalancerType,
}

pub(crate) fn open(kind: BalancerType) -> impl Fn(Interposed) -> Opening + Send + Sync {
    move |interposed| {
        Box::pin(async move {
            let moto = Moto::open(interposed).await.or_not_playable()?;
            Ok(Box::new(AwsTestCloud { moto, kind }) as Box<dyn TestCloud>)
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn number<T: TryFrom<u64> + Default>(value: &Value) -> T {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.and_then(|n| T::try_from(n).ok()).unwrap_or_default()
}

/// A check in the words of an API: `TCP`, a port, a path, numbers.
fn check(protocol: &str, port: u16, path: &str, numbers: &Value) -> HealthCheck {
    let [interval, timeout, unhealthy] =
        ["interval", "timeout", "unhealthy"].map(|n| number(&numbers[n]));
    health_check(protocol, path, port, [interval, timeout, unhealthy])
}

/// `HTTP:31080/ready`.
fn classic_check(value: &Value) -> HealthCheck {
    let target = text(&value["target"]);
    let (protocol, rest) = target.split_once(':').unwrap_or_default();
    let end = rest.find('/').unwrap_or(rest.len());
    let (port, path) = rest.split_at(end);
    check(protocol, port.parse().unwrap_or_default(), path, value)
}

fn network_check(value: &Value, node_port: u16) -> HealthCheck {
    let port = text(&value["port"]).parse().unwrap_or(node_port);
    check(
        &text(&value["protocol"]),
        port,
        &text(&value["path"]),
        value,
    )
}

fn actual_balancer(have: &Value, is_classic: bool) -> ActualBalancer {
    let shared_check = &have["check"];
    let listener = |value: &Value| {
        let (port, node_port) = (number(&value["port"]), number(&value["node_port"]));
        let health_check = if is_classic {
            classic_check(shared_check)
        } else {
            network_check(&value["check"], node_port)
        };
        let is_udp = text(&value["protocol"]) == "UDP";
        let protocol = if is_udp { Protocol::Udp } else { Protocol::Tcp };
        ActualListener {
            protocol,
            port,
            node_port,
            health_check,
        }
    };
    let targets = each(&have["targets"]).map(|id| (text(id), TargetState::Serving));
    let tags = have["tags"].as_object().into_iter().flatten();
    let id = if is_classic {
        &have["name"]
    } else {
        &have["arn"]
    };
    // What else annotations of the samples change.
    let size = format!("{} {}", have["idle"], have["cross_zone"]);
    ActualBalancer {
        listeners: each(&have["listeners"]).map(listener).collect(),
        targets: targets.collect(),
        internal: have["internal"] == true,
        source_ranges: networks(each(&have["ranges"]).map(text)),
        proxy_protocol: (have["proxy"] == true).then_some(ProxyProtocol::V1),
        size: Some(size),
        labels: tags
            .map(|(key, value)| (key.clone(), text(value)))
            .collect(),
        ..ActualBalancer::new(text(id), text(&have["name"]))
    }
}

fn actual_instance(have: &Value) -> ActualInstance {
    let (id, name, zone) = (text(&have["id"]), text(&have["name"]), text(&have["zone"]));
    let mut actual = ActualInstance::new(format!("aws:///{zone}/{id}"), &name, [])
        .of_type(text(&have["type"]))
        .at(zone, "us-east-1")
        .labelled("topology.k8s.aws/zone-id", &text(&have["zone_id"]));
    let addresses = [
        (AddressKind::InternalIp, text(&have["ip"])),
        (AddressKind::InternalDns, name.clone()),
        (AddressKind::Hostname, name),
    ];
    actual.node.addresses = addresses
        .map(|(kind, text)| NodeAddress::new(kind, text))
        .into();
    actual
}

fn actual_volume(have: &Value) -> ActualVolume {
    let handle = |id: &str| json!({"driver": "ebs.csi.aws.com", "volumeHandle": id});
    ActualVolume {
        source: "csi",
        content: handle(&text(&have["id"])),
        missing: handle("vol-00000000000000000"),
        place: VolumePlace {
            zones: vec![text(&have["zone"])],
            region: Some("us-east-1".to_owned()),
        },
    }
}

#[async_trait]
impl TestCloud for AwsTestCloud {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let mut config = self.moto.config();
        config.balancer_type = self.kind;
        config.tags = [("team".to_owned(), "kit".to_owned())].into();
        let provider = AwsProvider::connect(&config, &context, self.moto.wiring());
        Ok(Arc::new(provider.await?))
    }

    fn interposer(&self) -> &dyn FaultInjector {
        self.moto.interposed.interposer()
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        let (name, arguments) = match change {
            Change::AddInstance(name) => ("add_instance", json!([name])),
            Change::DestroyInstance(name) => ("destroy", json!([name])),
            Change::SwitchOff(name) => ("switch_off", json!([name])),
            Change::Terminate(name) => ("terminate", json!([name])),
            Change::Modify(name) => ("modify", json!([name])),
            Change::AddBalancer(name, owner) => {
                let owner = match owner {
                    OwnerLabels::None => "none",
                    OwnerLabels::OtherCluster => "another",
                };
                ("add_balancer", json!([name, self.kind.as_str(), owner]))
            }
            Change::Damage(id) => ("damage", json!([id])),
            Change::AddListener(id, port) => ("add_listener", json!([id, port])),
            Change::AddTarget(id, name) => ("add_target", json!([id, name])),
            Change::AddLabel(id, (key, value)) => ("add_label", json!([id, key, value])),
            Change::RemoveLabels(id) => ("remove_labels", json!([id])),
            Change::AddRoute(destination) => ("add_route", json!([destination])),
            Change::Protect(id) => ("protect", json!([id])),
            Change::AddVolume => ("add_volume", json!([])),
            Change::BalancerQuota(count) => ("quota", json!([count])),
            change @ Change::SlowJobs(_) => return Err(change.not_playable()),
        };
        let changed = self.moto.change(name, &arguments).await;
        changed.map(drop).or_not_playable()
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        let state = self.moto.state().await.or_not_playable()?;
        let balancers = each(&state["classic"]).map(|have| actual_balancer(have, true));
        let networks = each(&state["network"]).map(|have| actual_balancer(have, false));
        let route = |have: &Value| ActualRoute {
            destination: text(&have["destination"]).parse().unwrap_or_default(),
            hop: text(&have["hop"]),
        };
        let others = [
            Resource::all("security group", each(&state["security_groups"]).map(text)),
            Resource::all("target group", each(&state["target_groups"]).map(text)),
            Resource::all("rule of Nodes", each(&state["node_rules"]).map(text)),
        ];
        Ok(ActualState {
            instances: each(&state["instances"]).map(actual_instance).collect(),
            balancers: balancers.chain(networks).collect(),
            routes: each(&state["routes"]).map(route).collect(),
            volumes: each(&state["volumes"]).map(actual_volume).collect(),
            others: others.concat(),
        })
    }

    fn samples(&self) -> Samples {
        const CLASSIC: [(&str, &str); 2] = [
            (
                "service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout",
                "120",
            ),
            (
                "service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval",
                "20",
            ),
        ];
        const NETWORK: [(&str, &str); 2] = [
            (
                "service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled",
                "true",
            ),
            (
                "service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval",
                "20",
            ),
        ];
        let is_classic = self.kind == BalancerType::Classic;
        Samples {
            secrets: vec!["kit-secret-key".to_owned()],
            page_size: Some(1000),
            outside_target: (!is_classic).then(|| NodeAddress::internal([192, 168, 7, 7].into())),
            annotations: if is_classic { CLASSIC } else { NETWORK }.to_vec(),
            node_selector: Some("service.beta.kubernetes.io/aws-load-balancer-target-node-labels"),
            ..Samples::default()
        }
    }
}
