//! The settings that both forms have: each is declared once, under its two names.

use std::time::Duration;

use cloudkeel_api::{
    ConfigKey, ConfigReader, Documented, EnvKey, EnvReader, KeyDoc, KeyValue, Problem, Secret,
};
use ipnet::IpNet;

use super::values::{AddressFamily, Algorithm};
use super::{BalancerDefaults, CLOUD_ENDPOINT, Config, RobotConfig, robot_cache};

/// A setting under the name of its variable, and under that of its key.
pub(super) struct Setting<T> {
    env: EnvKey<T>,
    own: ConfigKey<T>,
}

impl<T: KeyValue> Setting<T> {
    /// One whose variable counts as not set while it is empty.
    const fn text(env: &'static str, own: &'static str, help: &'static str) -> Self {
        Self {
            env: EnvKey::new(env, help).empty_is_unset(),
            own: ConfigKey::new(own, help),
        }
    }

    const fn with_default(self, default: &'static str) -> Self {
        Self {
            env: self.env.with_default(default),
            own: self.own.with_default(default),
        }
    }
}

impl Setting<bool> {
    /// One whose variable is wrong if it is set but empty.
    const fn flag(env: &'static str, own: &'static str, help: &'static str) -> Self {
        Self {
            env: EnvKey::new(env, help),
            own: ConfigKey::new(own, help),
        }
    }
}

/// Declares every setting once: its type, how its variable is read, its two names, and its meaning.
macro_rules! settings {
    ($(
        $(#[default($default:expr)])?
        $key:ident: $type:ty = $read:ident($env:literal, $own:literal), $help:literal;
    )+) => {
        $(
            pub(super) const $key: Setting<$type> =
                Setting::$read($env, $own, $help)$(.with_default($default))?;
        )+

        /// Every setting that both forms have, for the reference page.
        pub(super) const ALL: &[&dyn DocumentedTwice] =
            &[&TOKEN, &ROBOT_USER, &ROBOT_PASSWORD, $(&$key),+];
    };
}

/// One of the two forms, while it is read.
pub(super) trait Form {
    fn get<T: KeyValue>(&mut self, setting: &Setting<T>) -> Option<T>;

    fn note(&mut self, problem: Problem);

    /// How a setting is called in this form.
    fn name<T: KeyValue>(&self, setting: &Setting<T>) -> &'static str;

    /// A flag with a default; what is wrong with it is noted, so the value does not matter then.
    fn flag(&mut self, setting: &Setting<bool>) -> bool {
        self.get(setting).unwrap_or_default()
    }

    /// A text that says something.
    fn words(&mut self, setting: &Setting<String>) -> Option<String> {
        self.get(setting).filter(|text| !text.is_empty())
    }
}

impl Form for EnvReader<'_> {
    fn get<T: KeyValue>(&mut self, setting: &Setting<T>) -> Option<T> {
        self.get(&setting.env)
    }

    fn note(&mut self, problem: Problem) {
        self.note(problem);
    }

    fn name<T: KeyValue>(&self, setting: &Setting<T>) -> &'static str {
        setting.env.name()
    }
}

impl Form for ConfigReader<'_> {
    fn get<T: KeyValue>(&mut self, setting: &Setting<T>) -> Option<T> {
        self.get(&setting.own)
    }

    fn note(&mut self, problem: Problem) {
        self.note(problem);
    }

    fn name<T: KeyValue>(&self, setting: &Setting<T>) -> &'static str {
        setting.own.path()
    }
}

pub(super) const TOKEN: Setting<Secret> = Setting {
    env: EnvKey::new(
        "HCLOUD_TOKEN",
        "The API token of the project. `HCLOUD_TOKEN_FILE` may name a file with it.",
    )
    .or_file(),
    own: ConfigKey::new("token", "The API token of the project."),
};
pub(super) const ROBOT_USER: Setting<String> = Setting {
    env: EnvKey::new(
        "ROBOT_USER",
        "The user of the Robot web service. `ROBOT_USER_FILE` may name a file with it.",
    )
    .or_file(),
    own: ConfigKey::new("robot.user", "The user of the Robot web service."),
};
pub(super) const ROBOT_PASSWORD: Setting<Secret> = Setting {
    env: EnvKey::new(
        "ROBOT_PASSWORD",
        "Its password. `ROBOT_PASSWORD_FILE` may name a file with it.",
    )
    .or_file(),
    own: ConfigKey::new("robot.password", "Its password."),
};

settings! {
    #[default(CLOUD_ENDPOINT)]
    ENDPOINT: String = text("HCLOUD_ENDPOINT", "endpoint"),
        "The address of the Cloud API, with its version.";
    #[default("false")]
    DEBUG: bool = flag("HCLOUD_DEBUG", "debug"),
        "Whether every request and answer is logged, without credentials.";
    NETWORK: String = text("HCLOUD_NETWORK", "network"),
        "The private network, by name or ID.";
    #[default("ipv4")]
    ADDRESS_FAMILY: AddressFamily = text("HCLOUD_INSTANCES_ADDRESS_FAMILY", "addressFamily"),
        "Which public addresses Nodes get.";
    #[default("true")]
    ZONE_LABEL: bool = flag("HCLOUD_INSTANCES_ZONE_LABEL_ENABLED", "zoneLabel"),
        "Whether Nodes of cloud servers get a zone label.";
    #[default("true")]
    BALANCERS: bool = flag("HCLOUD_LOAD_BALANCERS_ENABLED", "loadBalancers.enabled"),
        "Whether Services get load balancers.";
    LOCATION: String = text("HCLOUD_LOAD_BALANCERS_LOCATION", "loadBalancers.location"),
        "Where load balancers are made. Not together with the zone.";
    NETWORK_ZONE: String = text("HCLOUD_LOAD_BALANCERS_NETWORK_ZONE", "loadBalancers.networkZone"),
        "The zone where load balancers are made.";
    TYPE: String = text("HCLOUD_LOAD_BALANCERS_TYPE", "loadBalancers.type"),
        "The type of load balancers. Without it, `lb11` for new ones.";
    ALGORITHM: Algorithm = text("HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE", "loadBalancers.algorithm"),
        "How connections are spread.";
    #[default("false")]
    USE_PRIVATE_IP: bool = flag(
        "HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP",
        "loadBalancers.usePrivateIp"
    ),
        "Whether targets are reached through the private network.";
    #[default("false")]
    DISABLE_PRIVATE_INGRESS: bool = flag(
        "HCLOUD_LOAD_BALANCERS_DISABLE_PRIVATE_INGRESS",
        "loadBalancers.disablePrivateIngress"
    ),
        "Whether private addresses are left out of a Service's status.";
    #[default("false")]
    DISABLE_IPV6: bool = flag("HCLOUD_LOAD_BALANCERS_DISABLE_IPV6", "loadBalancers.disableIpv6"),
        "Whether IPv6 addresses are left out of a Service's status.";
    DISABLE_PUBLIC_NETWORK: bool = flag(
        "HCLOUD_LOAD_BALANCERS_DISABLE_PUBLIC_NETWORK",
        "loadBalancers.disablePublicNetwork"
    ),
        "Whether load balancers have no public addresses. Not set: left as it is.";
    USES_PROXY_PROTOCOL: bool = flag(
        "HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL",
        "loadBalancers.usesProxyProtocol"
    ),
        "Whether targets are told the client's address by PROXY protocol. Not set: left as it is.";
    SUBNET: IpNet = text(
        "HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE",
        "loadBalancers.privateSubnetIpRange"
    ),
        "The subnet from which load balancers get their private address.";
    CHECK_INTERVAL: Duration = text(
        "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL",
        "loadBalancers.healthCheck.interval"
    ),
        "The pause between two health checks.";
    CHECK_TIMEOUT: Duration = text(
        "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_TIMEOUT",
        "loadBalancers.healthCheck.timeout"
    ),
        "How long a health check may take.";
    CHECK_RETRIES: u32 = text(
        "HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES",
        "loadBalancers.healthCheck.retries"
    ),
        "How often a health check fails until the target gets no traffic.";
    #[default("false")]
    ADOPT_BY_NAME: bool = flag("CLOUDKEEL_HCLOUD_ADOPT_BY_NAME", "loadBalancers.adoptByName"),
        "Whether any load balancer of the right name is taken over, with all that is on it, as the Go CCM \
         does.";
    #[default("false")]
    ROBOT: bool = flag("ROBOT_ENABLED", "robot.enabled"),
        "Whether there are dedicated servers.";
    #[default("5m")]
    ROBOT_CACHE_TIMEOUT: Duration = text("ROBOT_CACHE_TIMEOUT", "robot.cacheTimeout"),
        "How long a list of dedicated servers serves.";
    #[default("0s")]
    ROBOT_WAIT: Duration = text("ROBOT_RATE_LIMIT_WAIT_TIME", "robot.rateLimitWaitTime"),
        "How long Robot is left alone after it said that there were too many requests.";
    #[default("true")]
    ROBOT_FORWARD: bool = flag("ROBOT_FORWARD_INTERNAL_IPS", "robot.forwardInternalIps"),
        "Whether Nodes of dedicated servers keep the private addresses that their kubelets told.";
    #[default("false")]
    ROBOT_DELETE_RENAMED: bool = flag("CLOUDKEEL_ROBOT_DELETE_RENAMED", "robot.deleteRenamed"),
        "Whether a Node counts as gone when its dedicated server has got another name, as in the Go CCM.";
}

/// What the reference page says about a setting, of whatever type it is.
pub(super) trait DocumentedTwice {
    fn env(&self) -> KeyDoc;
    fn own(&self) -> KeyDoc;
}

impl<T: KeyValue> DocumentedTwice for Setting<T> {
    fn env(&self) -> KeyDoc {
        self.env.doc()
    }

    fn own(&self) -> KeyDoc {
        self.own.doc()
    }
}

/// Reads them all but the secrets, which each form finds in places of its own.
pub(super) fn read(form: &mut impl Form) -> Config {
    let endpoint = form.get(&ENDPOINT).unwrap_or_default();
    Config {
        endpoint: endpoint.trim_end_matches('/').to_owned(),
        debug: form.flag(&DEBUG),
        network: form.words(&NETWORK),
        address_family: form.get(&ADDRESS_FAMILY).unwrap_or_default(),
        zone_label: form.flag(&ZONE_LABEL),
        load_balancers: balancers(form),
        robot: robot(form),
        ..Config::new("")
    }
}

fn balancers(form: &mut impl Form) -> BalancerDefaults {
    BalancerDefaults {
        enabled: form.flag(&BALANCERS),
        location: form.words(&LOCATION),
        network_zone: form.words(&NETWORK_ZONE),
        kind: form.words(&TYPE),
        algorithm: form.get(&ALGORITHM),
        use_private_ip: form.flag(&USE_PRIVATE_IP),
        disable_private_ingress: form.flag(&DISABLE_PRIVATE_INGRESS),
        disable_ipv6: form.flag(&DISABLE_IPV6),
        disable_public_network: form.get(&DISABLE_PUBLIC_NETWORK),
        uses_proxy_protocol: form.get(&USES_PROXY_PROTOCOL),
        private_subnet_ip_range: form.get(&SUBNET),
        health_check_interval: form.get(&CHECK_INTERVAL),
        health_check_timeout: form.get(&CHECK_TIMEOUT),
        health_check_retries: form.get(&CHECK_RETRIES),
        adopt_by_name: form.flag(&ADOPT_BY_NAME),
    }
}

fn robot(form: &mut impl Form) -> RobotConfig {
    RobotConfig {
        enabled: form.flag(&ROBOT),
        cache_timeout: robot_cache(form.get(&ROBOT_CACHE_TIMEOUT).unwrap_or_default()),
        rate_limit_wait: form.get(&ROBOT_WAIT).unwrap_or_default(),
        forward_internal_ips: form.flag(&ROBOT_FORWARD),
        delete_renamed: form.flag(&ROBOT_DELETE_RENAMED),
        ..RobotConfig::default()
    }
}
