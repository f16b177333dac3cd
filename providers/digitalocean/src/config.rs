//! The settings of DigitalOcean: the Go CCM's environment, or our own form.

use std::path::PathBuf;

use cloudkeel_api::{Problems, ProviderInput, Secret};
use cloudkeel_toolkit::{Setting, Settings as _, SettingsReader, keywords, settings};

/// Where the API is.
pub const ENDPOINT: &str = "https://api.digitalocean.com/";
/// Where a droplet asks about itself.
pub const METADATA_ENDPOINT: &str = "http://169.254.169.254/metadata/v1";

keywords! {
    /// The two types of load balancers.
    #[derive(Default)]
    pub enum BalancerType (exact) {
        /// Ends connections: TCP, HTTP and TLS, to node ports.
        Regional = "REGIONAL",
        /// Passes packets on, to the ports of the Service.
        #[default]
        Network = "REGIONAL_NETWORK",
    }
}

settings! {
    /// The settings.
    pub struct Config {
        /// The API token.
        pub token: Secret = Setting::key("token").env("DO_ACCESS_TOKEN").file("tokenFile").variable("tokenEnv")
            .env_help("The API token. `DO_ACCESS_TOKEN_FILE` may name a file with it.")
            .non_empty().for_header().required(),
        /// The address of the API, without its version.
        pub endpoint: String = Setting::key("endpoint").env("DO_OVERRIDE_URL").default(ENDPOINT),
        /// The address of the metadata service, which says where this machine is.
        pub metadata_endpoint: String = Setting::key("metadataEndpoint").default(METADATA_ENDPOINT),
        /// The region of new load balancers. Without it, that of this machine.
        pub region: Option<String> = Setting::key("region").env("REGION").non_empty(),
        /// The cluster's ID: load balancers get the tag `k8s:` and this ID.
        pub cluster_id: Option<String> = Setting::key("clusterId").env("DO_CLUSTER_ID").non_empty(),
        /// The VPC of new load balancers. Without it, the default one of the region.
        pub vpc_id: Option<String> = Setting::key("vpcId").env("DO_CLUSTER_VPC_ID").non_empty(),
        /// The most requests per second.
        pub rate_limit_qps: Option<f64> = Setting::key("rateLimitQps").env("DO_API_RATE_LIMIT_QPS")
            .valid(|rate| (0.001..=1e6).contains(rate), "a number from 0.001 to 1000000"),
        /// The percentage of the request budget that is left to other tools.
        pub reserve_percent: u8 = Setting::key("reservePercent").default("20")
            .valid(|percent| *percent <= 90, "a percentage from 0 to 90"),
        /// The type of load balancers without an annotation: `REGIONAL` or `REGIONAL_NETWORK`.
        pub balancer_type: BalancerType = Setting::key("loadBalancers.type").env("DEFAULT_LB_TYPE")
            .env_lenient().default("REGIONAL_NETWORK"),
        /// The name of the firewall that opens ports of Services. Needs `firewall.tags`.
        firewall_name: Option<String> = Setting::key("firewall.name").env("PUBLIC_ACCESS_FIREWALL_NAME")
            .non_empty(),
        /// The tags of the droplets that the firewall is for.
        firewall_tags: Option<Vec<String>> = Setting::key("firewall.tags").env("PUBLIC_ACCESS_FIREWALL_TAGS"),
        /// Address to serve metrics of firewall calls on, in plain HTTP, in addition to those on the secure port. Not
        /// served if not set.
        pub metrics_address: Option<String> = Setting::key("metricsAddress").env("METRICS_ADDR").non_empty()
            .listen_address(),
        /// Address to serve `/healthz` on, in plain HTTP, which asks the API whether the token is good. Not served if
        /// not set.
        pub debug_address: Option<String> = Setting::key("debugAddress").env("DEBUG_ADDR").non_empty()
            .listen_address(),
    }
    rest {
        /// The firewall that opens ports of Services.
        pub firewall: Option<FirewallSettings>,
        /// The files that secrets were read from, besides those that variables name.
        pub files: Vec<PathBuf>,
    }
}

/// The firewall that opens ports of Services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirewallSettings {
    /// Its name.
    pub name: String,
    /// The tags of the droplets that it is for.
    pub tags: Vec<String>,
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
        let mut reader = SettingsReader::of(input);
        let mut config = Self::load(&mut reader);
        config.files = reader.files();
        let trimmed = config.endpoint.trim_end_matches('/').len();
        config.endpoint.truncate(trimmed);
        let tags = config.firewall_tags.take().filter(|tags| !tags.is_empty());
        let name = (&Self::firewall_name(), config.firewall_name.take());
        let both = reader.both(name, (&Self::firewall_tags(), tags));
        config.firewall = both.map(|(name, tags)| FirewallSettings { name, tags });
        reader.finish(config)
    }
}
