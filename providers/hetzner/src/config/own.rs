//! Our own form: the `config` of a cloud in the file of all clouds.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudkeel_api::{ConfigKey, ConfigReader, Documented, KeyDoc, Problem, Problems, Secret};
use ipnet::IpNet;
use serde_json::Value;

use super::values::{AddressFamily, Algorithm};
use super::{BalancerDefaults, Config, Names, RobotConfig, login, robot_cache};

const NAMES: Names = Names {
    token: TOKEN.path(),
    location: LOCATION.path(),
    network_zone: NETWORK_ZONE.path(),
    robot_user: ROBOT_USER.path(),
    robot_password: ROBOT_PASSWORD.path(),
};

const TOKEN: ConfigKey<Secret> = ConfigKey::new("token", "The API token of the project.");
const TOKEN_FILE: ConfigKey<String> = ConfigKey::new(
    "tokenFile",
    "A file that holds the token, in place of `token`.",
);
const TOKEN_ENV: ConfigKey<String> = ConfigKey::new(
    "tokenEnv",
    "An environment variable that holds the token, in place of `token`.",
);
const ENDPOINT: ConfigKey<String> = ConfigKey::new(
    "endpoint",
    "The address of the Cloud API, with its version.",
)
.with_default(super::CLOUD_ENDPOINT);
const DEBUG: ConfigKey<bool> = ConfigKey::new(
    "debug",
    "Whether every request and answer is logged, without credentials.",
)
.with_default("false");
const METRICS: ConfigKey<String> = ConfigKey::new(
    "metricsAddress",
    "Where metrics of API calls are served in plain HTTP, besides those on the secure port. Nowhere if not given.",
);
const RESERVE: ConfigKey<u16> = ConfigKey::new(
    "reservePercent",
    "The share of the project's request budget that is left to other tools.",
)
.with_default("20");
const NETWORK: ConfigKey<String> = ConfigKey::new("network", "The private network, by name or ID.");
const ATTACHED_CHECK: ConfigKey<bool> = ConfigKey::new(
    "attachedCheck",
    "Whether this machine must be in the private network.",
)
.with_default("true");
const METADATA: ConfigKey<String> =
    ConfigKey::new("metadataEndpoint", "Where this machine asks about itself.")
        .with_default(super::METADATA_ENDPOINT);
const ROUTES: ConfigKey<bool> = ConfigKey::new(
    "routes",
    "Whether routes are made in the private network, if there is one.",
)
.with_default("true");
const ADDRESS_FAMILY: ConfigKey<AddressFamily> =
    ConfigKey::new("addressFamily", "Which public addresses Nodes get.").with_default("ipv4");
const ZONE_LABEL: ConfigKey<bool> = ConfigKey::new(
    "zoneLabel",
    "Whether Nodes of cloud servers get a zone label.",
)
.with_default("true");
const BALANCERS: ConfigKey<bool> = ConfigKey::new(
    "loadBalancers.enabled",
    "Whether Services get load balancers.",
)
.with_default("true");
const LOCATION: ConfigKey<String> = ConfigKey::new(
    "loadBalancers.location",
    "Where load balancers are made. Not together with the zone.",
);
const NETWORK_ZONE: ConfigKey<String> = ConfigKey::new(
    "loadBalancers.networkZone",
    "The zone where load balancers are made.",
);
const TYPE: ConfigKey<String> = ConfigKey::new(
    "loadBalancers.type",
    "The type of load balancers. Without it, `lb11` for new ones.",
);
const ALGORITHM: ConfigKey<Algorithm> =
    ConfigKey::new("loadBalancers.algorithm", "How connections are spread.");
const USE_PRIVATE_IP: ConfigKey<bool> = ConfigKey::new(
    "loadBalancers.usePrivateIp",
    "Whether targets are reached through the private network.",
)
.with_default("false");
const DISABLE_PRIVATE_INGRESS: ConfigKey<bool> = ConfigKey::new(
    "loadBalancers.disablePrivateIngress",
    "Whether private addresses are left out of a Service's status.",
)
.with_default("false");
const DISABLE_IPV6: ConfigKey<bool> = ConfigKey::new(
    "loadBalancers.disableIpv6",
    "Whether IPv6 addresses are left out of a Service's status.",
)
.with_default("false");
const DISABLE_PUBLIC: ConfigKey<bool> = ConfigKey::new(
    "loadBalancers.disablePublicNetwork",
    "Whether load balancers have no public addresses. Not set: left as it is.",
);
const PROXY: ConfigKey<bool> = ConfigKey::new(
    "loadBalancers.usesProxyProtocol",
    "Whether targets are told the client's address by PROXY protocol. Not set: left as it is.",
);
const SUBNET: ConfigKey<IpNet> = ConfigKey::new(
    "loadBalancers.privateSubnetIpRange",
    "The subnet from which load balancers get their private address.",
);
const INTERVAL: ConfigKey<Duration> = ConfigKey::new(
    "loadBalancers.healthCheck.interval",
    "The pause between two health checks.",
);
const TIMEOUT: ConfigKey<Duration> = ConfigKey::new(
    "loadBalancers.healthCheck.timeout",
    "How long a health check may take.",
);
const RETRIES: ConfigKey<u32> = ConfigKey::new(
    "loadBalancers.healthCheck.retries",
    "How often a health check fails until the target gets no traffic.",
);
const ADOPT_BY_NAME: ConfigKey<bool> = ConfigKey::new(
    "loadBalancers.adoptByName",
    "Whether any load balancer of the right name is taken over, with all that is on it, as the Go CCM \
     does.",
)
.with_default("false");
const ROBOT: ConfigKey<bool> =
    ConfigKey::new("robot.enabled", "Whether there are dedicated servers.").with_default("false");
const ROBOT_USER: ConfigKey<String> =
    ConfigKey::new("robot.user", "The user of the Robot web service.");
const ROBOT_PASSWORD: ConfigKey<Secret> = ConfigKey::new("robot.password", "Its password.");
const ROBOT_USER_FILE: ConfigKey<String> = ConfigKey::new(
    "robot.userFile",
    "A file that holds the user, in place of `robot.user`.",
);
const ROBOT_PASSWORD_FILE: ConfigKey<String> = ConfigKey::new(
    "robot.passwordFile",
    "A file that holds the password, in place of `robot.password`.",
);
const ROBOT_ENDPOINT: ConfigKey<String> =
    ConfigKey::new("robot.endpoint", "The address of the Robot web service.")
        .with_default(super::ROBOT_ENDPOINT);
const ROBOT_CACHE: ConfigKey<Duration> = ConfigKey::new(
    "robot.cacheTimeout",
    "How long a list of dedicated servers serves.",
)
.with_default("5m");
const ROBOT_WAIT: ConfigKey<Duration> = ConfigKey::new(
    "robot.rateLimitWaitTime",
    "How long Robot is left alone after it said that there were too many requests.",
)
.with_default("0s");
const ROBOT_FORWARD: ConfigKey<bool> = ConfigKey::new(
    "robot.forwardInternalIps",
    "Whether Nodes of dedicated servers keep the private addresses that their kubelets told.",
)
.with_default("true");
const ROBOT_DELETE_RENAMED: ConfigKey<bool> = ConfigKey::new(
    "robot.deleteRenamed",
    "Whether a Node counts as gone when its dedicated server has got another name, as in the Go CCM.",
)
.with_default("false");

/// Every key, for the reference page.
pub(super) fn docs() -> Vec<KeyDoc> {
    let keys: &[&dyn Documented] = &[
        &TOKEN,
        &TOKEN_FILE,
        &TOKEN_ENV,
        &ENDPOINT,
        &DEBUG,
        &METRICS,
        &RESERVE,
        &NETWORK,
        &ATTACHED_CHECK,
        &METADATA,
        &ROUTES,
        &ADDRESS_FAMILY,
        &ZONE_LABEL,
        &BALANCERS,
        &LOCATION,
        &NETWORK_ZONE,
        &TYPE,
        &ALGORITHM,
        &USE_PRIVATE_IP,
        &DISABLE_PRIVATE_INGRESS,
        &DISABLE_IPV6,
        &DISABLE_PUBLIC,
        &PROXY,
        &SUBNET,
        &INTERVAL,
        &TIMEOUT,
        &RETRIES,
        &ADOPT_BY_NAME,
        &ROBOT,
        &ROBOT_USER,
        &ROBOT_USER_FILE,
        &ROBOT_PASSWORD,
        &ROBOT_PASSWORD_FILE,
        &ROBOT_ENDPOINT,
        &ROBOT_CACHE,
        &ROBOT_WAIT,
        &ROBOT_FORWARD,
        &ROBOT_DELETE_RENAMED,
    ];
    keys.iter().map(|key| key.doc()).collect()
}

/// Reads them all, and tells everything that is wrong.
pub(super) fn read(config: &Value, env: &BTreeMap<String, String>) -> Result<Config, Problems> {
    let mut reader = ConfigReader::new(config);
    let token = token(&mut reader, env);
    let reserve = reserve(&mut reader);
    let endpoint = reader.get(&ENDPOINT).unwrap_or_default();
    let read = Config {
        endpoint: endpoint.trim_end_matches('/').to_owned(),
        debug: flag(&mut reader, &DEBUG),
        metrics_address: reader.get(&METRICS),
        network: reader.get(&NETWORK).filter(|network| !network.is_empty()),
        attached_check: flag(&mut reader, &ATTACHED_CHECK),
        metadata_endpoint: reader.get(&METADATA).unwrap_or_default(),
        routes: flag(&mut reader, &ROUTES),
        address_family: reader.get(&ADDRESS_FAMILY).unwrap_or_default(),
        zone_label: flag(&mut reader, &ZONE_LABEL),
        reserve_percent: reserve,
        load_balancers: balancers(&mut reader),
        robot: robot(&mut reader),
        ..Config::new(token.unwrap_or_else(|| Secret::new("")))
    };
    let mut problems = Problems::new();
    read.check(&NAMES, &mut problems);
    for problem in problems.iter() {
        reader.note(problem.clone());
    }
    reader.finish(|| Some(read))
}

fn flag(reader: &mut ConfigReader<'_>, key: &ConfigKey<bool>) -> bool {
    reader.get(key).unwrap_or_default()
}

fn reserve(reader: &mut ConfigReader<'_>) -> u8 {
    let percent = reader.get(&RESERVE).unwrap_or_default();
    u8::try_from(percent)
        .ok()
        .filter(|percent| *percent <= 90)
        .unwrap_or_else(|| {
            let problem = Problem::unexpected(
                RESERVE.path(),
                percent.to_string(),
                "a percentage from 0 to 90",
            );
            reader.note(problem);
            0
        })
}

/// The token, from one place.
fn token(reader: &mut ConfigReader<'_>, env: &BTreeMap<String, String>) -> Option<Secret> {
    let plain = reader.get(&TOKEN);
    let file = reader.get(&TOKEN_FILE);
    let variable = reader.get(&TOKEN_ENV);
    let problem = match (plain, file, variable) {
        (token, None, None) => return token,
        (None, Some(path), None) => match read_file(TOKEN_FILE.path(), path) {
            Ok(text) => return Some(Secret::new(text)),
            Err(problem) => problem,
        },
        (None, None, Some(name)) => match env.get(&name) {
            Some(text) if !text.is_empty() => return Some(Secret::new(text.trim())),
            _ => Problem::unexpected(TOKEN_ENV.path(), name, "a variable that is set"),
        },
        _ => Problem::new(
            TOKEN.path(),
            "give one of `token`, `tokenFile` and `tokenEnv`, not several",
        ),
    };
    reader.note(problem);
    // Something was given, so that it is missing is not worth telling.
    Some(Secret::new("wrong"))
}

fn read_file(key: &'static str, path: String) -> Result<String, Problem> {
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Ok(_) => Err(Problem::unexpected(key, path, "a file that is not empty")),
        Err(error) => {
            let expected = format!("a readable file: {error}");
            Err(Problem::unexpected(key, path, expected))
        }
    }
}

fn balancers(reader: &mut ConfigReader<'_>) -> BalancerDefaults {
    let said = |text: Option<String>| text.filter(|text| !text.is_empty());
    BalancerDefaults {
        enabled: flag(reader, &BALANCERS),
        location: said(reader.get(&LOCATION)),
        network_zone: said(reader.get(&NETWORK_ZONE)),
        kind: said(reader.get(&TYPE)),
        algorithm: reader.get(&ALGORITHM),
        use_private_ip: flag(reader, &USE_PRIVATE_IP),
        disable_private_ingress: flag(reader, &DISABLE_PRIVATE_INGRESS),
        disable_ipv6: flag(reader, &DISABLE_IPV6),
        disable_public_network: reader.get(&DISABLE_PUBLIC),
        uses_proxy_protocol: reader.get(&PROXY),
        private_subnet_ip_range: reader.get(&SUBNET),
        health_check_interval: reader.get(&INTERVAL),
        health_check_timeout: reader.get(&TIMEOUT),
        health_check_retries: reader.get(&RETRIES),
        adopt_by_name: flag(reader, &ADOPT_BY_NAME),
    }
}

fn robot(reader: &mut ConfigReader<'_>) -> RobotConfig {
    let enabled = flag(reader, &ROBOT);
    let user = reader.get(&ROBOT_USER);
    let user = user.or_else(|| from_file(reader, &ROBOT_USER_FILE));
    let password = reader.get(&ROBOT_PASSWORD);
    let in_file = from_file(reader, &ROBOT_PASSWORD_FILE);
    let password = password.or_else(|| in_file.map(Secret::new));
    let login = login(user, password, &NAMES).unwrap_or_else(|problem| {
        reader.note(problem);
        None
    });
    RobotConfig {
        enabled,
        login: login.filter(|_| enabled),
        endpoint: reader.get(&ROBOT_ENDPOINT).unwrap_or_default(),
        cache_timeout: robot_cache(reader.get(&ROBOT_CACHE).unwrap_or_default()),
        rate_limit_wait: reader.get(&ROBOT_WAIT).unwrap_or_default(),
        forward_internal_ips: flag(reader, &ROBOT_FORWARD),
        delete_renamed: flag(reader, &ROBOT_DELETE_RENAMED),
    }
}

fn from_file(reader: &mut ConfigReader<'_>, key: &ConfigKey<String>) -> Option<String> {
    let path = reader.get(key)?;
    match read_file(key.path(), path) {
        Ok(text) => Some(text),
        Err(problem) => {
            reader.note(problem);
            None
        }
    }
}
