//! An emulated OpenStack under the kit.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, CloudProvider, ConfigSource, ProviderContext, ProviderFactory as _, ProviderInput,
};
use cloudkeel_emulator_openstack::emulation::{CallTotals, CommonFault, FaultTiming};
use cloudkeel_emulator_openstack::{InProcess, Kind, OpenStackCloud, Settings};
use cloudkeel_provider_openstack::{CLUSTER_UID, OpenStackFactory, SERVICE_UID, Wiring};
use cloudkeel_testkit::conformance::{
    ActualState, Change, ELSEWHERE, FaultInjector, Samples, Stop, TestCloud,
};
use serde_json::{Value, json};

use crate::state::{Snapshot, refers, samples, text};

/// A floating IP that belongs to the project and is free.
const FREE_IP: &str = "203.0.113.77";

struct OpenStackTestCloud {
    cloud: OpenStackCloud,
    calls: Calls,
}

/// The emulator, without faults that OpenStack cannot have: its lists announce no total.
struct Calls(OpenStackCloud);

impl FaultInjector for Calls {
    fn call_totals(&self) -> CallTotals {
        self.0.call_totals()
    }

    fn reset_calls(&self) {
        FaultInjector::reset_calls(&self.0);
    }

    fn inject(&self, when: FaultTiming, fault: CommonFault) -> bool {
        let is_playable = !matches!(
            fault,
            CommonFault::TruncatedPage | CommonFault::LostNextPage
        );
        is_playable && self.0.inject(when, fault)
    }

    fn clear_faults(&self) {
        self.0.clear_faults();
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "other clouds cannot always be made"
)]
pub(crate) fn new() -> Result<Box<dyn TestCloud>, Stop> {
    let mut settings = Settings::default();
    settings.latency.fixed = Duration::from_millis(8);
    settings.job_duration = Duration::from_millis(1_500);
    settings.page_size = 50;
    let cloud = OpenStackCloud::new(settings);
    cloud.add_project(ELSEWHERE);
    cloud.add_server_in(ELSEWHERE, "theirs");
    cloud.add(
        Kind::FloatingIp,
        json!({"floating_ip_address": FREE_IP, "port_id": null, "description": "mine"}),
    );
    let calls = Calls(cloud.clone());
    Ok(Box::new(OpenStackTestCloud { cloud, calls }))
}

/// A `cloud.conf` as an operator writes it.
fn cloud_conf() -> String {
    format!(
        "[Global]\nauth-url={}/identity\nusername={}\npassword={}\ntenant-id={}\ndomain-name=Default\nregion={}\n\
         [LoadBalancer]\nsubnet-id={}\nfloating-network-id={}\ncreate-monitor=true\n\
         [Route]\nrouter-id={}\n",
        InProcess::URL,
        OpenStackCloud::USER,
        OpenStackCloud::PASSWORD,
        OpenStackCloud::PROJECT,
        OpenStackCloud::REGION,
        OpenStackCloud::SUBNET,
        OpenStackCloud::EXTERNAL,
        OpenStackCloud::ROUTER,
    )
}

impl OpenStackTestCloud {
    fn snapshot(&self) -> Snapshot {
        let all = |kind| self.cloud.all(kind);
        let mut servers = all(Kind::Server);
        servers.sort_by_key(|server| server.get("order").and_then(Value::as_u64));
        Snapshot {
            servers,
            ports: all(Kind::Port),
            routers: all(Kind::Router),
            floating_ips: all(Kind::FloatingIp),
            security_groups: all(Kind::SecurityGroup),
            balancers: all(Kind::LoadBalancer),
            listeners: all(Kind::Listener),
            pools: all(Kind::Pool),
            members: all(Kind::Member),
            monitors: all(Kind::Monitor),
            volumes: all(Kind::Volume),
        }
    }

    fn id_of(&self, name: &str) -> String {
        self.snapshot().id_of(name)
    }

    fn damage(&self, id: &str) {
        let now = self.snapshot();
        let first = now.listeners_of(id).next();
        let first = first.map(|listener| text(listener, "id"));
        let first = first.unwrap_or_default();
        for pool in now.pools_of(id) {
            let pool_id = text(pool, "id");
            for member in now.members_of(pool_id) {
                self.cloud.remove(Kind::Member, text(member, "id"));
            }
            if refers(pool, "listeners", first) {
                self.cloud.remove(Kind::Pool, pool_id);
            }
        }
        self.cloud.remove(Kind::Listener, first);
    }

    fn add_listener_by_hand(&self, id: &str, port: u16) {
        let cloud = &self.cloud;
        let listener = json!({
            "loadbalancers": [{"id": id}], "protocol": "TCP", "protocol_port": port, "tags": [], "name": "by hand",
        });
        let listener = cloud.add(Kind::Listener, listener);
        let pool = json!({
            "loadbalancers": [{"id": id}], "listeners": [{"id": listener}], "protocol": "TCP",
            "lb_algorithm": "ROUND_ROBIN", "name": "by hand",
        });
        let pool = cloud.add(Kind::Pool, pool);
        let ips = self.snapshot().balancer(&json!({"id": id})).targets;
        for (ip, _) in ips {
            cloud.add(
                Kind::Member,
                json!({"pool_id": pool, "address": ip, "protocol_port": 31_999}),
            );
        }
    }

    fn add_tag(&self, id: &str, tag: &str) {
        let cloud = &self.cloud;
        let all = cloud.all(Kind::LoadBalancer);
        let found = all.iter().find(|balancer| text(balancer, "id") == id);
        let mut tags = found
            .and_then(|b| b.get("tags")?.as_array().cloned())
            .unwrap_or_default();
        tags.push(json!(tag));
        cloud.set(Kind::LoadBalancer, id, &json!({"tags": tags}));
    }

    fn add_target(&self, id: &str, name: &str) {
        let now = self.snapshot();
        let ip = now.ips_of(&now.id_of(name)).into_iter().next();
        for pool in now.pools_of(id) {
            let member = json!({"pool_id": text(pool, "id"), "address": ip, "protocol_port": 31_000, "name": name});
            self.cloud.add(Kind::Member, member);
        }
    }
}

#[async_trait]
impl TestCloud for OpenStackTestCloud {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let input = ProviderInput {
            config: ConfigSource::File {
                path: "cloud.conf".into(),
                text: cloud_conf(),
            },
            ..ProviderInput::default()
        };
        let factory = OpenStackFactory::wired(Wiring::over(self.cloud.transport()));
        factory.build(input, context).await
    }

    fn interposer(&self) -> &dyn FaultInjector {
        &self.calls
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        let cloud = &self.cloud;
        match change {
            Change::AddInstance(name) => drop(cloud.add_server(name)),
            Change::DestroyInstance(name) => cloud.destroy_server(&self.id_of(name)),
            Change::SwitchOff(name) => cloud.set(
                Kind::Server,
                &self.id_of(name),
                &json!({"status": "SHUTOFF"}),
            ),
            Change::Modify(name) => {
                cloud.set(
                    Kind::Server,
                    &self.id_of(name),
                    &json!({"accessIPv4": "198.51.100.7"}),
                );
            }
            Change::AddBalancer(name, owner) => {
                let labels = owner.labels(SERVICE_UID, CLUSTER_UID);
                let tags: Vec<_> = labels
                    .iter()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                cloud.add_load_balancer(name, &tags);
            }
            Change::Damage(id) => self.damage(id),
            Change::AddListener(id, port) => self.add_listener_by_hand(id, port),
            Change::AddTarget(id, name) => self.add_target(id, name),
            Change::AddLabel(id, (key, value)) => self.add_tag(id, &format!("{key}={value}")),
            Change::RemoveLabels(id) => cloud.set(Kind::LoadBalancer, id, &json!({"tags": []})),
            Change::AddRoute(destination) => {
                let router = cloud.all(Kind::Router).pop().unwrap_or_default();
                let mut routes = router
                    .get("routes")
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default();
                routes
                    .push(json!({"destination": destination.to_string(), "nexthop": "10.6.99.99"}));
                cloud.set(
                    Kind::Router,
                    OpenStackCloud::ROUTER,
                    &json!({"routes": routes}),
                );
            }
            Change::AddVolume => {
                cloud.add(
                    Kind::Volume,
                    json!({"availability_zone": "az 1", "name": "disk"}),
                );
            }
            Change::BalancerQuota(count) => cloud.change_settings(|now| now.load_balancers = count),
            Change::SlowJobs(duration) => cloud.change_settings(|now| now.job_duration = duration),
            change => return Err(change.not_playable()),
        }
        Ok(())
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        Ok(self.snapshot().state())
    }

    fn samples(&self) -> Samples {
        Samples {
            page_size: Some(50),
            address: FREE_IP.parse().ok(),
            ..samples(OpenStackCloud::PASSWORD)
        }
    }
}
