//! The settings of Hetzner: the Go CCM's environment, or our own form.

use std::path::PathBuf;
use std::time::Duration;

use cloudkeel_api::{ConfigSource, IpFamily, KeyDoc, Problems, ProviderInput, Secret};
use cloudkeel_toolkit::settings::by_name;
use cloudkeel_toolkit::{Setting, Settings, SettingsReader, keywords, settings};
use ipnet::IpNet;

/// Where the Cloud API is.
pub const CLOUD_ENDPOINT: &str = "https://api.hetzner.cloud/v1";

/// Where the Robot web service is.
pub const ROBOT_ENDPOINT: &str = "https://robot-ws.your-server.de";

/// Where a server asks about itself.
pub const METADATA_ENDPOINT: &str = "http://169.254.169.254/hetzner/v1/metadata";

/// The length of every token that Hetzner issues.
const TOKEN_LENGTH: usize = 64;

keywords! {
    /// Which public addresses Nodes get.
    #[derive(Default)]
    pub enum AddressFamily (exact) {
        /// IPv4 only.
        #[default]
        Ipv4 = "ipv4",
        /// IPv6 only.
        Ipv6 = "ipv6",
        /// Both.
        DualStack = "dualstack",
    }
}

impl AddressFamily {
    /// Whether addresses of this family are among them.
    pub const fn has(self, family: IpFamily) -> bool {
        match family {
            IpFamily::V4 => matches!(self, Self::Ipv4 | Self::DualStack),
            IpFamily::V6 => matches!(self, Self::Ipv6 | Self::DualStack),
        }
    }
}

keywords! {
    /// How connections are distributed.
    pub enum Algorithm {
        /// One after the other.
        RoundRobin = "round_robin",
        /// To the one with the fewest.
        LeastConnections = "least_connections",
    }
}

keywords! {
    /// How the Go CCM keeps servers.
    pub(crate) enum CacheMode (exact) {
        All = "all",
        One = "one",
        Off = "off",
    }
}

settings! {
    /// The settings.
    pub struct Config {
        /// The API token of the project.
        pub token: Secret = Setting::key("token").env("HCLOUD_TOKEN").file("tokenFile").variable("tokenEnv")
            .env_help("The API token of the project. `HCLOUD_TOKEN_FILE` may name a file with it.")
            .non_empty().for_header().required(),
        /// The address of the Cloud API, with its version.
        pub endpoint: String = Setting::key("endpoint").env("HCLOUD_ENDPOINT").default(CLOUD_ENDPOINT),
        /// Whether every request and answer is logged, without credentials.
        pub debug: bool = Setting::key("debug").env("HCLOUD_DEBUG").default("false"),
        /// Address to serve metrics of API calls on, in plain HTTP, in addition to those on the secure port. Not
        /// served if not set.
        pub metrics_address: Option<String> = Setting::key("metricsAddress").env("HCLOUD_METRICS_ADDRESS")
            .env_default(":8233").env_help("Address to serve metrics of API calls on."),
        /// The private network, by name or ID.
        pub network: Option<String> = Setting::key("network").env("HCLOUD_NETWORK").non_empty(),
        /// Whether to check at start that this machine is in the private network.
        pub attached_check: bool = Setting::key("attachedCheck").default("true")
            .env_not("HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK")
            .env_help("Whether to skip the check that this machine is in the private network."),
        /// The address of the metadata service.
        pub metadata_endpoint: String = Setting::key("metadataEndpoint").default(METADATA_ENDPOINT),
        /// Whether routes are created in the private network, if there is one.
        pub routes: bool = Setting::key("routes").default("true").env("HCLOUD_NETWORK_ROUTES_ENABLED")
            .env_only_with("HCLOUD_NETWORK")
            .env_help("Whether routes are created in the private network. Only with HCLOUD_NETWORK."),
        /// Which public addresses Nodes get.
        pub address_family: AddressFamily = Setting::key("addressFamily").default("ipv4")
            .env("HCLOUD_INSTANCES_ADDRESS_FAMILY"),
        /// Whether Nodes of cloud servers get a zone label.
        pub zone_label: bool = Setting::key("zoneLabel").default("true")
            .env("HCLOUD_INSTANCES_ZONE_LABEL_ENABLED"),
        /// The percentage of the project's request budget that is left to other tools.
        pub reserve_percent: u8 = Setting::key("reservePercent").default("20")
            .valid(|percent| *percent <= 90, "a percentage from 0 to 90"),
    }
    groups {
        /// Load balancers.
        pub load_balancers: BalancerDefaults,
        /// Dedicated servers.
        pub robot: RobotConfig,
    }
    rest {
        /// The files that secrets were read from, besides those that variables name.
        pub files: Vec<PathBuf>,
    }
}

settings! {
    /// What Services get without an annotation that says otherwise. `None` leaves a thing as it is.
    pub struct BalancerDefaults {
        /// Whether Services get load balancers.
        pub enabled: bool = Setting::key("loadBalancers.enabled").default("true")
            .env("HCLOUD_LOAD_BALANCERS_ENABLED"),
        /// The location of new load balancers. Not together with the network zone.
        pub location: Option<String> = Setting::key("loadBalancers.location").non_empty()
            .env("HCLOUD_LOAD_BALANCERS_LOCATION"),
        /// The network zone of new load balancers.
        pub network_zone: Option<String> = Setting::key("loadBalancers.networkZone").non_empty()
            .env("HCLOUD_LOAD_BALANCERS_NETWORK_ZONE"),
        /// The type of load balancers. Without it, `lb11` for new ones.
        pub load_balancer_type: Option<String> = Setting::key("loadBalancers.type").non_empty()
            .env("HCLOUD_LOAD_BALANCERS_TYPE"),
        /// How connections are distributed.
        pub algorithm: Option<Algorithm> = Setting::key("loadBalancers.algorithm")
            .env("HCLOUD_LOAD_BALANCERS_ALGORITHM_TYPE"),
        /// Whether targets are reached through the private network.
        pub use_private_ip: bool = Setting::key("loadBalancers.usePrivateIp").default("false")
            .env("HCLOUD_LOAD_BALANCERS_USE_PRIVATE_IP"),
        /// Whether private addresses are left out of a Service's status.
        pub disable_private_ingress: bool = Setting::key("loadBalancers.disablePrivateIngress").default("false")
            .env("HCLOUD_LOAD_BALANCERS_DISABLE_PRIVATE_INGRESS"),
        /// Whether IPv6 addresses are left out of a Service's status.
        pub disable_ipv6: bool = Setting::key("loadBalancers.disableIpv6").default("false")
            .env("HCLOUD_LOAD_BALANCERS_DISABLE_IPV6"),
        /// Whether load balancers have no public addresses. Not changed if not set.
        pub disable_public_network: Option<bool> = Setting::key("loadBalancers.disablePublicNetwork")
            .env("HCLOUD_LOAD_BALANCERS_DISABLE_PUBLIC_NETWORK"),
        /// Whether the client's address is sent to targets by PROXY protocol. Not changed if not set.
        pub uses_proxy_protocol: Option<bool> = Setting::key("loadBalancers.usesProxyProtocol")
            .env("HCLOUD_LOAD_BALANCERS_USES_PROXYPROTOCOL"),
        /// The subnet from which load balancers get their private address.
        pub private_subnet_ip_range: Option<IpNet> = Setting::key("loadBalancers.privateSubnetIpRange")
            .env("HCLOUD_LOAD_BALANCERS_PRIVATE_SUBNET_IP_RANGE"),
        /// The interval between health checks.
        pub health_check_interval: Option<Duration> = Setting::key("loadBalancers.healthCheck.interval")
            .env("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_INTERVAL"),
        /// The timeout of a health check.
        pub health_check_timeout: Option<Duration> = Setting::key("loadBalancers.healthCheck.timeout")
            .env("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_TIMEOUT"),
        /// Consecutive failures until a target gets no traffic.
        pub health_check_retries: Option<u32> = Setting::key("loadBalancers.healthCheck.retries")
            .env("HCLOUD_LOAD_BALANCERS_HEALTH_CHECK_RETRIES"),
        /// Whether any load balancer of the right name is adopted, with everything on it, as the Go CCM does.
        pub adopt_by_name: bool = Setting::key("loadBalancers.adoptByName").default("false")
            .env("CLOUDKEEL_HCLOUD_ADOPT_BY_NAME"),
    }
}

settings! {
    /// Dedicated servers.
    pub struct RobotConfig {
        /// Whether dedicated servers of Hetzner Robot are supported.
        pub enabled: bool = Setting::key("robot.enabled").default("false").env("ROBOT_ENABLED"),
        /// The address of the Robot web service.
        pub endpoint: String = Setting::key("robot.endpoint").default(ROBOT_ENDPOINT),
        /// How long a list of dedicated servers is cached.
        pub cache_timeout: Duration = Setting::key("robot.cacheTimeout").default("5m").env("ROBOT_CACHE_TIMEOUT"),
        /// How long Robot is not called after it answered that there were too many requests.
        pub rate_limit_wait: Duration = Setting::key("robot.rateLimitWaitTime").default("0s")
            .env("ROBOT_RATE_LIMIT_WAIT_TIME"),
        /// Whether Nodes of dedicated servers keep the private addresses that their kubelets reported.
        pub forward_internal_ips: bool = Setting::key("robot.forwardInternalIps").default("true")
            .env("ROBOT_FORWARD_INTERNAL_IPS"),
        /// Whether a Node is deleted when its dedicated server was renamed, as in the Go CCM.
        pub delete_renamed: bool = Setting::key("robot.deleteRenamed").default("false")
            .env("CLOUDKEEL_ROBOT_DELETE_RENAMED"),
    }
    rest {
        /// User and password. Without them, dedicated servers are only targets by private address.
        pub login: Option<(String, Secret)>,
    }
}

settings! {
    /// What counts only together with something else, or not at all.
    struct Others {
        /// The user of the Robot web service.
        user: Option<String> = Setting::key("robot.user").env("ROBOT_USER").file("robot.userFile").non_empty()
            .env_help("The user of the Robot web service. `ROBOT_USER_FILE` may name a file with it."),
        /// The password of the Robot web service.
        password: Option<Secret> = Setting::key("robot.password").env("ROBOT_PASSWORD").file("robot.passwordFile")
            .non_empty().env_help("The password of the Robot web service. `ROBOT_PASSWORD_FILE` may name a file with \
                   it."),
        /// Whether metrics of API calls are served in plain HTTP, in addition to those on the secure port.
        metrics: bool = Setting::only_env("HCLOUD_METRICS_ENABLED").default("true"),
        /// Validated, but without effect: one list serves everything.
        cache_mode: Option<CacheMode> = Setting::only_env("HCLOUD_SERVER_CACHE_MODE").env_strict(),
        /// Validated, but without effect: one list serves everything.
        cache_max_age: Option<Duration> = Setting::only_env("HCLOUD_SERVER_CACHE_MAX_AGE"),
    }
}

impl Config {
    /// The settings with their defaults.
    pub fn new(token: impl Into<Secret>) -> Self {
        Self {
            token: token.into(),
            ..Self::default()
        }
    }

    /// Reads the settings and reports everything that is wrong with them.
    pub fn read(input: &ProviderInput) -> Result<Self, Problems> {
        if let ConfigSource::File { path, .. } = &input.config {
            tracing::warn!(path = %path.display(), "--cloud-config is ignored: set environment variables");
        }
        let mut reader = SettingsReader::of(input);
        let mut config = Self::load(&mut reader);
        let others = Others::load(&mut reader);
        config.files = reader.files();
        config.check(others, &mut reader);
        if !matches!(input.config, ConfigSource::Own(_)) {
            config.routes &= config.network.is_some();
        }
        let config = reader.finish(config)?;
        if config.token.expose().len() != TOKEN_LENGTH {
            tracing::warn!("the token does not have {TOKEN_LENGTH} characters, as Hetzner's do");
        }
        Ok(config)
    }

    /// Every key, for the reference page.
    pub(crate) fn docs() -> Vec<KeyDoc> {
        by_name([Self::keys(), Others::keys()])
    }

    /// What only shows when settings are seen together. User and password of Robot count only if that is
    /// enabled.
    fn check(&mut self, others: Others, reader: &mut SettingsReader<'_>) {
        let trimmed = self.endpoint.trim_end_matches('/').len();
        self.endpoint.truncate(trimmed);
        self.metrics_address = self.metrics_address.take().filter(|_| others.metrics);
        if self.robot.cache_timeout.is_zero() {
            self.robot.cache_timeout = RobotConfig::default().cache_timeout;
        }
        if self.robot.enabled {
            let user = (&Others::user(), others.user);
            self.robot.login = reader.both(user, (&Others::password(), others.password));
        }
        let balancers = &self.load_balancers;
        if balancers.location.is_some() && balancers.network_zone.is_some() {
            let other = reader.name(&BalancerDefaults::network_zone());
            let message = format!("give either this or {other}, not both");
            reader.problem(&BalancerDefaults::location(), message);
        }
    }
}

#[cfg(test)]
mod tests;
