//! The settings of Hetzner: the Go CCM's environment, or our own form.

mod both;
mod env;
mod own;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use cloudkeel_api::{CloudError, ConfigSource, KeyDoc, Problem, Problems, ProviderInput, Secret};
use ipnet::IpNet;

use self::both::{Form, LOCATION, NETWORK_ZONE, ROBOT_PASSWORD, ROBOT_USER, TOKEN};
pub use self::values::{AddressFamily, Algorithm};

/// Where the Cloud API is.
pub const CLOUD_ENDPOINT: &str = "https://api.hetzner.cloud/v1";

/// Where the Robot web service is.
pub const ROBOT_ENDPOINT: &str = "https://robot-ws.your-server.de";

/// Where a server asks about itself.
pub const METADATA_ENDPOINT: &str = "http://169.254.169.254/hetzner/v1/metadata";

/// How long a list of dedicated servers serves if nothing else is said.
const ROBOT_CACHE: Duration = Duration::from_mins(5);

/// The length of every token that Hetzner issues.
const TOKEN_LENGTH: usize = 64;

/// The settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The credential of the project.
    pub token: Secret,
    /// The address of the Cloud API, with its version.
    pub endpoint: String,
    /// Whether every request and answer is logged.
    pub debug: bool,
    /// Where metrics of API calls are served in plain HTTP, such as `:8233`.
    pub metrics_address: Option<String>,
    /// The private network, by name or ID.
    pub network: Option<String>,
    /// Whether this machine must be in that network.
    pub attached_check: bool,
    /// Where this machine asks about itself.
    pub metadata_endpoint: String,
    /// Whether routes are made in that network.
    pub routes: bool,
    /// Which public addresses Nodes get.
    pub address_family: AddressFamily,
    /// Whether Nodes of cloud servers get a zone.
    pub zone_label: bool,
    /// The share of the request budget that is left to other tools.
    pub reserve_percent: u8,
    /// Load balancers.
    pub load_balancers: BalancerDefaults,
    /// Dedicated servers.
    pub robot: RobotConfig,
    /// The files that secrets were read from, besides those that variables name.
    pub files: Vec<PathBuf>,
}

/// What Services get without an annotation that says otherwise. `None` leaves a thing as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct BalancerDefaults {
    /// Whether there are any.
    pub enabled: bool,
    /// Where they are made.
    pub location: Option<String>,
    /// The zone where they are made, without a location.
    pub network_zone: Option<String>,
    /// Their type.
    pub kind: Option<String>,
    /// How connections are spread.
    pub algorithm: Option<Algorithm>,
    /// Whether targets are reached through the private network.
    pub use_private_ip: bool,
    /// Whether private addresses are left out of the status.
    pub disable_private_ingress: bool,
    /// Whether IPv6 addresses are left out of the status.
    pub disable_ipv6: bool,
    /// Whether they have no public addresses.
    pub disable_public_network: Option<bool>,
    /// PROXY protocol.
    pub uses_proxy_protocol: Option<bool>,
    /// The subnet from which they get their private address.
    pub private_subnet_ip_range: Option<IpNet>,
    /// Between two health checks.
    pub health_check_interval: Option<Duration>,
    /// For a health check.
    pub health_check_timeout: Option<Duration>,
    /// Failed health checks.
    pub health_check_retries: Option<u32>,
    /// Whether any balancer of the right name is taken over, as the Go CCM does.
    pub adopt_by_name: bool,
}

impl Default for BalancerDefaults {
    fn default() -> Self {
        Self {
            enabled: true,
            location: None,
            network_zone: None,
            kind: None,
            algorithm: None,
            use_private_ip: false,
            disable_private_ingress: false,
            disable_ipv6: false,
            disable_public_network: None,
            uses_proxy_protocol: None,
            private_subnet_ip_range: None,
            health_check_interval: None,
            health_check_timeout: None,
            health_check_retries: None,
            adopt_by_name: false,
        }
    }
}

/// Dedicated servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotConfig {
    /// Whether there are any.
    pub enabled: bool,
    /// User and password. Without them, dedicated servers are only targets by private address.
    pub login: Option<(String, Secret)>,
    /// The address of the web service.
    pub endpoint: String,
    /// How long a list serves.
    pub cache_timeout: Duration,
    /// How long to hold back after too many requests.
    pub rate_limit_wait: Duration,
    /// Whether a Node keeps the private addresses that its kubelet told.
    pub forward_internal_ips: bool,
    /// Whether a Node counts as gone when its server has got another name.
    pub delete_renamed: bool,
}

impl Default for RobotConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            login: None,
            endpoint: ROBOT_ENDPOINT.to_owned(),
            cache_timeout: ROBOT_CACHE,
            rate_limit_wait: Duration::ZERO,
            forward_internal_ips: true,
            delete_renamed: false,
        }
    }
}

impl Config {
    /// The settings with their defaults.
    pub fn new(token: impl Into<Secret>) -> Self {
        Self {
            token: token.into(),
            endpoint: CLOUD_ENDPOINT.to_owned(),
            debug: false,
            metrics_address: None,
            network: None,
            attached_check: true,
            metadata_endpoint: METADATA_ENDPOINT.to_owned(),
            routes: true,
            address_family: AddressFamily::default(),
            zone_label: true,
            reserve_percent: 20,
            load_balancers: BalancerDefaults::default(),
            robot: RobotConfig::default(),
            files: Vec::new(),
        }
    }

    /// Reads the settings and tells everything that is wrong with them.
    pub fn read(input: &ProviderInput) -> Result<Self, Problems> {
        let config = match &input.config {
            ConfigSource::Own(config) => own::read(config, &input.env)?,
            ConfigSource::None => env::read(&input.env)?,
            ConfigSource::File { path, .. } => {
                tracing::warn!(path = %path.display(), "--cloud-config is not read: Hetzner is set up by environment variables");
                env::read(&input.env)?
            }
        };
        if config.token.expose().len() != TOKEN_LENGTH {
            tracing::warn!(
                "the token is not {TOKEN_LENGTH} characters long, as all of Hetzner's are"
            );
        }
        Ok(config)
    }

    /// Every key, for the reference page.
    pub(crate) fn docs() -> Vec<KeyDoc> {
        let mut docs = own::docs();
        docs.extend(env::docs());
        docs.sort_by_key(|doc| doc.name);
        docs
    }

    /// What only shows when settings are seen together. User and password of Robot count only if that is
    /// enabled.
    fn check(&mut self, login: (Option<String>, Option<Secret>), form: &mut impl Form) {
        if self.robot.enabled {
            self.robot.login = both_or_neither(login, form);
        }
        let token = form.name(&TOKEN);
        if self.token.is_empty() {
            form.note(Problem::new(token, "is required"));
        } else if http::HeaderValue::from_str(self.token.expose()).is_err() {
            let expected = "text without line breaks and control characters";
            form.note(Problem::unexpected_secret(token, expected));
        }
        let balancers = &self.load_balancers;
        if balancers.location.is_some() && balancers.network_zone.is_some() {
            let message = format!("give either this or {}, not both", form.name(&NETWORK_ZONE));
            form.note(Problem::new(form.name(&LOCATION), message));
        }
    }
}

/// User and password, or neither. An empty one counts as none.
fn both_or_neither(
    (user, password): (Option<String>, Option<Secret>),
    form: &mut impl Form,
) -> Option<(String, Secret)> {
    let user = user.filter(|user| !user.is_empty());
    let password = password.filter(|password| !password.is_empty());
    let names = (form.name(&ROBOT_USER), form.name(&ROBOT_PASSWORD));
    let (missing, given) = match (user, password) {
        (Some(user), Some(password)) => return Some((user, password)),
        (None, None) => return None,
        (Some(_), None) => (names.1, names.0),
        (None, Some(_)) => names,
    };
    let message = format!("is required with {given}");
    form.note(Problem::new(missing, message));
    None
}

/// Nothing is as good as not said.
fn robot_cache(given: Duration) -> Duration {
    if given.is_zero() { ROBOT_CACHE } else { given }
}

/// Settings that are right by themselves but that the cloud does not go along with.
pub(crate) fn wrong(message: impl Into<String>) -> CloudError {
    CloudError::invalid("set up hcloud", message)
}

#[cfg(test)]
mod tests;
