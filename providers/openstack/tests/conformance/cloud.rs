//! An emulated OpenStack under the kit.

use std::time::Duration;

use cloudkeel_api::ConfigSource;
use cloudkeel_emulator_openstack::{InProcess, Kind, OpenStackCloud, Settings};
use cloudkeel_provider_openstack::{CLUSTER_UID, OpenStackFactory, SERVICE_UID, Wiring};
use cloudkeel_testkit::conformance::{Change, ELSEWHERE, EmulatedCloud, Samples, Stop};
use serde_json::{Value, json};

use crate::state::{Snapshot, refers, samples, text};

/// A floating IP that belongs to the project and is free.
const FREE_IP: &str = "203.0.113.77";

pub(crate) fn new() -> EmulatedCloud<OpenStackCloud> {
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
    let wiring = Wiring::over(cloud.transport());
    EmulatedCloud {
        cloud,
        factory: Box::new(OpenStackFactory::wired(wiring)),
        config: ConfigSource::File {
            path: "cloud.conf".into(),
            text: cloud_conf(),
        },
        change,
        state: |cloud| snapshot(cloud).state(),
        samples: Samples {
            page_size: Some(50),
            address: FREE_IP.parse().ok(),
            ..samples(OpenStackCloud::PASSWORD)
        },
    }
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

fn snapshot(cloud: &OpenStackCloud) -> Snapshot {
    let all = |kind| cloud.all(kind);
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

fn damage(cloud: &OpenStackCloud, id: &str) {
    let now = snapshot(cloud);
    let first = now.listeners_of(id).next();
    let first = first.map(|listener| text(listener, "id"));
    let first = first.unwrap_or_default();
    for pool in now.pools_of(id) {
        let pool_id = text(pool, "id");
        for member in now.members_of(pool_id) {
            cloud.remove(Kind::Member, text(member, "id"));
        }
        if refers(pool, "listeners", first) {
            cloud.remove(Kind::Pool, pool_id);
        }
    }
    cloud.remove(Kind::Listener, first);
}

fn add_listener(cloud: &OpenStackCloud, id: &str, port: u16) {
    let listener = json!({
        "loadbalancers": [{"id": id}], "protocol": "TCP", "protocol_port": port, "tags": [], "name": "by hand",
    });
    let listener = cloud.add(Kind::Listener, listener);
    let pool = json!({
        "loadbalancers": [{"id": id}], "listeners": [{"id": listener}], "protocol": "TCP",
        "lb_algorithm": "ROUND_ROBIN", "name": "by hand",
    });
    cloud.add(Kind::Pool, pool);
}

fn add_target(cloud: &OpenStackCloud, id: &str, server: &str, name: &str) {
    let now = snapshot(cloud);
    let ip = now.ips_of(server).into_iter().next();
    for pool in now.pools_of(id) {
        let member = json!({"pool_id": text(pool, "id"), "address": ip, "protocol_port": 31_000, "name": name});
        cloud.add(Kind::Member, member);
    }
}

/// Adds something to a list that a resource has.
fn append(cloud: &OpenStackCloud, kind: Kind, id: &str, field: &str, added: Value) {
    let all = cloud.all(kind);
    let found = all.iter().find(|it| text(it, "id") == id);
    let list = found.and_then(|it| it.get(field)?.as_array().cloned());
    let list: Vec<_> = list.into_iter().flatten().chain([added]).collect();
    cloud.set(kind, id, &json!({field: list}));
}

fn change(cloud: &OpenStackCloud, change: Change<'_>, server: &str) -> Result<(), Stop> {
    match change {
        Change::AddInstance(name) => drop(cloud.add_server(name)),
        Change::DestroyInstance(_) => cloud.destroy_server(server),
        Change::SwitchOff(_) => cloud.set(Kind::Server, server, &json!({"status": "SHUTOFF"})),
        Change::Modify(_) => {
            cloud.set(Kind::Server, server, &json!({"accessIPv4": "198.51.100.7"}));
        }
        Change::AddBalancer(name, owner) => {
            let labels = owner.labels(SERVICE_UID, CLUSTER_UID);
            let tags = labels.iter().map(|(key, value)| format!("{key}={value}"));
            cloud.add_load_balancer(name, &tags.collect::<Vec<_>>());
        }
        Change::Damage(id) => damage(cloud, id),
        Change::AddListener(id, port) => add_listener(cloud, id, port),
        Change::AddTarget(id, name) => add_target(cloud, id, server, name),
        Change::AddLabel(id, (key, value)) => {
            let tag = json!(format!("{key}={value}"));
            append(cloud, Kind::LoadBalancer, id, "tags", tag);
        }
        Change::RemoveLabels(id) => cloud.set(Kind::LoadBalancer, id, &json!({"tags": []})),
        Change::AddRoute(destination) => {
            let route = json!({"destination": destination.to_string(), "nexthop": "10.6.99.99"});
            append(cloud, Kind::Router, OpenStackCloud::ROUTER, "routes", route);
        }
        Change::AddVolume => {
            let volume = json!({"availability_zone": "az 1", "name": "disk"});
            cloud.add(Kind::Volume, volume);
        }
        Change::BalancerQuota(count) => cloud.change_settings(|now| now.load_balancers = count),
        Change::SlowJobs(duration) => cloud.change_settings(|now| now.job_duration = duration),
        change => return Err(change.not_playable()),
    }
    Ok(())
}
