//! The environment variables of the Go CCM, with their quirks: a boolean that is set but empty is
//! wrong, a text that is empty is not set.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::{Documented, EnvKey, EnvReader, KeyDoc, KeyValue, Problem, Problems, Secret};
use ipnet::IpNet;

use super::values::{AddressFamily, Algorithm, CacheMode};
use super::{BalancerDefaults, Config, Names, RobotConfig, login, robot_cache};

const NAMES: Names = Names {
    token: TOKEN.name(),
    location: LOCATION.name(),
    network_zone: NETWORK_ZONE.name(),
    robot_user: ROBOT_USER.name(),
    robot_password: ROBOT_PASSWORD.name(),
};

const TOKEN: EnvKey<Secret> = EnvKey::new(
    "HCLOUD_TOKEN",
    "The API token of the project. `HCLOUD_TOKEN_FILE` may name a file with it.",
)
.or_file();
const ENDPOINT: EnvKey<String> = text(
    "HCLOUD_ENDPOINT",
    "The address of the Cloud API, with its version.",
)
.with_default(super::CLOUD_ENDPOINT);
const DEBUG: EnvKey<bool> = EnvKey::new(
    "HCLOUD_DEBUG",
    "Whether every request and answer is logged, without credentials.",
)
.with_default("false");
const NETWORK: EnvKey<String> = text("HCLOUD_NETWORK", "The private network, by name or ID.");
const DISABLE_ATTACHED_CHECK: EnvKey<bool> = EnvKey::new(
    "HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK",
    "Whether this machine need not be in the private network.",
)
.with_default("false");
const ROUTES_ENABLED: EnvKey<bool> = EnvKey::new(
    "HCLOUD_NETWORK_ROUTES_ENABLED",
    "Whether routes are made in the private network. Looked at only with HCLOUD_NETWORK.",
)
.with_default("true");
const ADDRESS_FAMILY: EnvKey<AddressFamily> = text(
    "HCLOUD_INSTANCES_ADDRESS_FAMILY",
    "Which public addresses Nodes get.",
)
.with_default("ipv4");
const ZONE_LABEL: EnvKey<bool> = EnvKey::new(
    "HCLOUD_INSTANCES_ZONE_LABEL_ENABLED",
    "Whether Nodes of cloud servers get a zone label.",
)
.with_default("true");
const CACHE_MODE: EnvKey<CacheMode> = EnvKey::new(
    "HCLOUD_SERVER_CACHE_MODE",
    "Checked, but without effect: one sweep serves everything.",
);
const CACHE_MAX_AGE: EnvKey<Duration> = text(
    "HCLOUD_SERVER_CACHE_MAX_AGE",
    "Checked, but without effect: one sweep serves everything.",
);
const METRICS_ENABLED: EnvKey<bool> = EnvKey::new(
    "HCLOUD_METRICS_ENABLED",
    "Whether metrics of API calls are served in plain HTTP, besides those on the secure port.",
)
.with_default("true");
const METRICS_ADDRESS: EnvKey<String> = text(
    "HCLOUD_METRICS_ADDRESS",
    "Where metrics of API calls are served.",
)
.with_default(":8233");
const BALANCERS_ENABLED: EnvKey<bool> = EnvKey::new(
    "HCLOUD_LOAD_BALANCERS_ENABLED",
    "Whether Services get load balancers.",
)
.with_default("true");
const LOCATION: EnvKey<String> = text(
    "HCLOUD_LOAD_BALANCERS_LOCATION",
    "Where load balancers are made. Not together with the zone.",
);
const NETWORK_ZONE: EnvKey<String> = text(
    "HCLOUD_LOAD_BALANCERS_NETWORK_ZONE",
    "The zone where load balancers are made.",
);
const TYPE: EnvKey<String> = text(
    "HCLOUD_LOAD_BALANCERS_TYPE",
    "The type of load balancers. Without it, `lb11` for new ones.",
);
const ALGORITHM: EnvKey<Algorithm> = text(
    "HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE",
    "How connections are spread.",
);
const USE_PRIVATE_IP: EnvKey<bool> = EnvKey::new(
    "HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP",
    "Whether targets are reached through the private network.",
)
.with_default("false");
const DISABLE_PRIVATE_INGRESS: EnvKey<bool> = EnvKey::new(
    "HCLOUD_LOAD_BALANCERS_DISABLE_PRIVATE_INGRESS",
    "Whether private addresses are left out of a Service's status.",
)
.with_default("false");
const DISABLE_IPV6: EnvKey<bool> = EnvKey::new(
    "HCLOUD_LOAD_BALANCERS_DISABLE_IPV6",
    "Whether IPv6 addresses are left out of a Service's status.",
)
.with_default("false");
const DISABLE_PUBLIC_NETWORK: EnvKey<bool> = EnvKey::new(
    "HCLOUD_LOAD_BALANCERS_DISABLE_PUBLIC_NETWORK",
    "Whether load balancers have no public addresses. Not set: left as it is.",
);
const USES_PROXYPROTOCOL: EnvKey<bool> = EnvKey::new(
    "HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL",
    "Whether targets are told the client's address by PROXY protocol. Not set: left as it is.",
);
const SUBNET: EnvKey<IpNet> = text(
    "HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE",
    "The subnet from which load balancers get their private address.",
);
const CHECK_INTERVAL: EnvKey<Duration> = text(
    "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL",
    "The pause between two health checks.",
);
const CHECK_TIMEOUT: EnvKey<Duration> = text(
    "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_TIMEOUT",
    "How long a health check may take.",
);
const CHECK_RETRIES: EnvKey<u32> = text(
    "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES",
    "How often a health check fails until the target gets no traffic.",
);
const ADOPT_BY_NAME: EnvKey<bool> = EnvKey::new(
    "CLOUDKEEL_HCLOUD_ADOPT_BY_NAME",
    "Whether any load balancer of the right name is taken over, with all that is on it, as the Go CCM \
     does.",
)
.with_default("false");
const ROBOT_ENABLED: EnvKey<bool> =
    EnvKey::new("ROBOT_ENABLED", "Whether there are dedicated servers.").with_default("false");
const ROBOT_USER: EnvKey<String> = EnvKey::new(
    "ROBOT_USER",
    "The user of the Robot web service. `ROBOT_USER_FILE` may name a file with it.",
)
.or_file();
const ROBOT_PASSWORD: EnvKey<Secret> = EnvKey::new(
    "ROBOT_PASSWORD",
    "Its password. `ROBOT_PASSWORD_FILE` may name a file with it.",
)
.or_file();
const ROBOT_CACHE_TIMEOUT: EnvKey<Duration> = text(
    "ROBOT_CACHE_TIMEOUT",
    "How long a list of dedicated servers serves.",
)
.with_default("5m");
const ROBOT_WAIT: EnvKey<Duration> = text(
    "ROBOT_RATE_LIMIT_WAIT_TIME",
    "How long Robot is left alone after it said that there were too many requests.",
)
.with_default("0s");
const ROBOT_FORWARD: EnvKey<bool> = EnvKey::new(
    "ROBOT_FORWARD_INTERNAL_IPS",
    "Whether Nodes of dedicated servers keep the private addresses that their kubelets told.",
)
.with_default("true");
const ROBOT_DELETE_RENAMED: EnvKey<bool> = EnvKey::new(
    "CLOUDKEEL_ROBOT_DELETE_RENAMED",
    "Whether a Node counts as gone when its dedicated server has got another name, as in the Go CCM.",
)
.with_default("false");

/// A variable for which empty means not set.
const fn text<T: KeyValue>(name: &'static str, help: &'static str) -> EnvKey<T> {
    EnvKey::new(name, help).empty_is_unset()
}

/// Every variable, for the reference page.
pub(super) fn docs() -> Vec<KeyDoc> {
    let keys: &[&dyn Documented] = &[
        &TOKEN,
        &ENDPOINT,
        &DEBUG,
        &NETWORK,
        &DISABLE_ATTACHED_CHECK,
        &ROUTES_ENABLED,
        &ADDRESS_FAMILY,
        &ZONE_LABEL,
        &CACHE_MODE,
        &CACHE_MAX_AGE,
        &METRICS_ENABLED,
        &METRICS_ADDRESS,
        &BALANCERS_ENABLED,
        &LOCATION,
        &NETWORK_ZONE,
        &TYPE,
        &ALGORITHM,
        &USE_PRIVATE_IP,
        &DISABLE_PRIVATE_INGRESS,
        &DISABLE_IPV6,
        &DISABLE_PUBLIC_NETWORK,
        &USES_PROXYPROTOCOL,
        &SUBNET,
        &CHECK_INTERVAL,
        &CHECK_TIMEOUT,
        &CHECK_RETRIES,
        &ADOPT_BY_NAME,
        &ROBOT_ENABLED,
        &ROBOT_USER,
        &ROBOT_PASSWORD,
        &ROBOT_CACHE_TIMEOUT,
        &ROBOT_WAIT,
        &ROBOT_FORWARD,
        &ROBOT_DELETE_RENAMED,
    ];
    keys.iter().map(|key| key.doc()).collect()
}

/// Reads them all, and tells everything that is wrong.
pub(super) fn read(variables: &BTreeMap<String, String>) -> Result<Config, Problems> {
    let mut reader = EnvReader::new(variables);
    let token = reader.get(&TOKEN).unwrap_or_else(|| Secret::new(""));
    let network = reader.get(&NETWORK);
    // A wrong value is only told where it would count.
    let routes = network.is_some() && flag(&mut reader, &ROUTES_ENABLED);
    reader.get(&CACHE_MODE);
    reader.get(&CACHE_MAX_AGE);
    let metrics = reader.get(&METRICS_ADDRESS);
    let serves_metrics = flag(&mut reader, &METRICS_ENABLED);
    let endpoint = reader.get(&ENDPOINT).unwrap_or_default();
    let config = Config {
        endpoint: endpoint.trim_end_matches('/').to_owned(),
        debug: flag(&mut reader, &DEBUG),
        metrics_address: metrics.filter(|_| serves_metrics),
        attached_check: !flag(&mut reader, &DISABLE_ATTACHED_CHECK),
        address_family: reader.get(&ADDRESS_FAMILY).unwrap_or_default(),
        zone_label: flag(&mut reader, &ZONE_LABEL),
        load_balancers: balancers(&mut reader),
        robot: robot(&mut reader),
        network,
        routes,
        ..Config::new(token)
    };
    let mut problems = reader.into_problems();
    config.check(&NAMES, &mut problems);
    problems.into_result()?;
    Ok(config)
}

/// A flag with a default; what is wrong with it is noted, so the value does not matter then.
fn flag(reader: &mut EnvReader<'_>, key: &EnvKey<bool>) -> bool {
    reader.get(key).unwrap_or_default()
}

fn balancers(reader: &mut EnvReader<'_>) -> BalancerDefaults {
    BalancerDefaults {
        enabled: flag(reader, &BALANCERS_ENABLED),
        location: reader.get(&LOCATION),
        network_zone: reader.get(&NETWORK_ZONE),
        kind: reader.get(&TYPE),
        algorithm: reader.get(&ALGORITHM),
        use_private_ip: flag(reader, &USE_PRIVATE_IP),
        disable_private_ingress: flag(reader, &DISABLE_PRIVATE_INGRESS),
        disable_ipv6: flag(reader, &DISABLE_IPV6),
        disable_public_network: reader.get(&DISABLE_PUBLIC_NETWORK),
        uses_proxy_protocol: reader.get(&USES_PROXYPROTOCOL),
        private_subnet_ip_range: reader.get(&SUBNET),
        health_check_interval: reader.get(&CHECK_INTERVAL),
        health_check_timeout: reader.get(&CHECK_TIMEOUT),
        health_check_retries: reader.get(&CHECK_RETRIES),
        adopt_by_name: flag(reader, &ADOPT_BY_NAME),
    }
}

fn robot(reader: &mut EnvReader<'_>) -> RobotConfig {
    let enabled = flag(reader, &ROBOT_ENABLED);
    let user = reader.get(&ROBOT_USER);
    let password = reader.get(&ROBOT_PASSWORD);
    let config = RobotConfig {
        enabled,
        cache_timeout: robot_cache(reader.get(&ROBOT_CACHE_TIMEOUT).unwrap_or_default()),
        rate_limit_wait: reader.get(&ROBOT_WAIT).unwrap_or_default(),
        forward_internal_ips: flag(reader, &ROBOT_FORWARD),
        delete_renamed: flag(reader, &ROBOT_DELETE_RENAMED),
        ..RobotConfig::default()
    };
    if !enabled {
        return config;
    }
    let login = login(user, password, &NAMES).unwrap_or_else(|problem: Problem| {
        reader.note(problem);
        None
    });
    RobotConfig { login, ..config }
}
