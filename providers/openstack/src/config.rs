//! The settings of OpenStack: the Go CCM's `cloud.conf`, `clouds.yaml`, or our own form.

mod clouds_yaml;
mod credential;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cloudkeel_api::{
    ConfigSource, Documented as _, FlagKey, KeyDoc, KeyPlace, KeyValue as _, LabelSelector,
    Problem, Problems, ProviderInput, Secret,
};
use cloudkeel_toolkit::settings::{Ini, by_name};
use cloudkeel_toolkit::{Setting, Settings, SettingsReader, keywords, settings};
use serde_json::Value;

use self::clouds_yaml::CloudsYaml;
pub(crate) use self::credential::{Credential, Identity, Scope};

/// The flag of the Go CCM that may be repeated.
const USER_AGENT: FlagKey<String> = FlagKey::new(
    "user-agent",
    "Put in front of the User-Agent of every request. May be repeated.",
);

/// Where the Go CCM looks for classes of load balancers.
const CLASS_SECTION: &str = "LoadBalancerClass";

keywords! {
    /// Which of a service's addresses is used.
    #[derive(Default)]
    pub enum Interface (exact) {
        /// The one for everybody.
        #[default]
        Public = "public",
        /// The one inside the cloud.
        Internal = "internal",
        /// The one for administrators.
        Admin = "admin",
    }
}

keywords! {
    /// Who keeps TLS certificates.
    #[derive(Default)]
    pub enum ContainerStore (exact) {
        /// Barbican, which is asked whether it has them.
        #[default]
        Barbican = "barbican",
        /// Another service, which is not asked.
        External = "external",
    }
}

settings! {
    /// The settings.
    pub struct Config {
        /// Whether the credential is read from `clouds.yaml`.
        pub use_clouds: bool = Setting::key("auth.useClouds").ini("Global.use-clouds").default("false"),
        /// The file `clouds.yaml`. Without it, the places that OpenStack's clients read.
        pub clouds_file: Option<String> = Setting::key("auth.cloudsFile").ini("Global.clouds-file").non_empty(),
        /// The entry of `clouds.yaml`. Its credential wins over all others.
        pub cloud: Option<String> = Setting::key("auth.cloud").ini("Global.cloud").non_empty(),
        /// Whether provider IDs have the region in them: `openstack://region/server`.
        pub regional: bool = Setting::key("regionalIds").env("OS_CCM_REGIONAL").default("false"),
        /// How long an answer may take.
        pub request_timeout: Duration = Setting::key("requestTimeout").ini("Metadata.request-timeout").default("60s")
            .valid(|timeout: &Duration| !timeout.is_zero(), "a duration above zero"),
        /// Validated, but without effect: nothing is read from the machine that this runs on.
        search_order: Option<String> = Setting::only_ini("Metadata.search-order")
            .valid(|order: &String| is_search_order(order), "at most two of `configDrive` and `metadataService`"),
        /// The router that gets routes to the Pod networks. Without it, there are no routes.
        pub router: Option<String> = Setting::key("router").ini("Route.router-id").non_empty(),
    }
    groups {
        /// The credential.
        pub auth: AuthSettings,
        /// The addresses of Nodes.
        pub networking: Networking,
        /// Load balancers.
        pub load_balancers: BalancerSettings,
    }
    rest {
        /// What is put in front of the User-Agent.
        pub user_agents: Vec<String>,
        /// The files that settings were read from.
        pub files: Vec<PathBuf>,
        /// Classes of load balancers, by name.
        pub classes: BTreeMap<String, ClassSettings>,
    }
}

settings! {
    /// Who logs in where.
    pub struct AuthSettings {
        /// The address of Keystone.
        pub url: Option<String> = Setting::key("auth.url").ini("Global.auth-url").non_empty(),
        /// The user, by ID.
        pub user_id: Option<String> = Setting::key("auth.userId").ini("Global.user-id").non_empty(),
        /// The user, by name. Needs a domain.
        pub username: Option<String> = Setting::key("auth.username").ini("Global.username").non_empty(),
        /// The password.
        pub password: Option<Secret> = Setting::key("auth.password").ini("Global.password").file("auth.passwordFile")
            .non_empty(),
        /// The project, by ID.
        pub project_id: Option<String> = Setting::key("auth.projectId").ini("Global.tenant-id").non_empty(),
        /// The project, by name. Needs a domain.
        pub project_name: Option<String> = Setting::key("auth.projectName").ini("Global.tenant-name").non_empty(),
        /// The trust that is used.
        pub trust_id: Option<String> = Setting::key("auth.trustId").ini("Global.trust-id").non_empty(),
        /// The user that is trusted, in place of the user.
        pub trustee_id: Option<String> = Setting::key("auth.trusteeId").ini("Global.trustee-id").non_empty(),
        /// The password of the user that is trusted.
        pub trustee_password: Option<Secret> = Setting::key("auth.trusteePassword").ini("Global.trustee-password")
            .file("auth.trusteePasswordFile").non_empty(),
        /// The domain of user and project, by ID.
        pub domain_id: Option<String> = Setting::key("auth.domainId").ini("Global.domain-id").non_empty(),
        /// The domain of user and project, by name.
        pub domain_name: Option<String> = Setting::key("auth.domainName").ini("Global.domain-name").non_empty(),
        /// The domain of the project, by ID.
        pub project_domain_id: Option<String> = Setting::key("auth.projectDomainId").ini("Global.tenant-domain-id")
            .non_empty(),
        /// The domain of the project, by name.
        pub project_domain_name: Option<String> = Setting::key("auth.projectDomainName")
            .ini("Global.tenant-domain-name").non_empty(),
        /// The domain of the user, by ID.
        pub user_domain_id: Option<String> = Setting::key("auth.userDomainId").ini("Global.user-domain-id").non_empty(),
        /// The domain of the user, by name.
        pub user_domain_name: Option<String> = Setting::key("auth.userDomainName").ini("Global.user-domain-name")
            .non_empty(),
        /// A token in place of a user. It cannot be renewed.
        pub token: Option<Secret> = Setting::key("auth.token").ini("Global.token").file("auth.tokenFile").non_empty(),
        /// The application credential, by ID.
        pub app_id: Option<String> = Setting::key("auth.applicationCredentialId")
            .ini("Global.application-credential-id").non_empty(),
        /// The application credential, by name. Needs a user.
        pub app_name: Option<String> = Setting::key("auth.applicationCredentialName")
            .ini("Global.application-credential-name").non_empty(),
        /// The secret of the application credential.
        pub app_secret: Option<Secret> = Setting::key("auth.applicationCredentialSecret")
            .file("auth.applicationCredentialSecretFile").ini("Global.application-credential-secret").non_empty(),
        /// The region. Without it, the first address that the catalogue has.
        pub region: Option<String> = Setting::key("region").ini("Global.region").non_empty(),
        /// Which addresses of the catalogue are used.
        pub interface: Option<Interface> = Setting::key("interface").ini("Global.os-endpoint-type"),
        /// A file with certificates of CAs that are trusted too.
        pub ca_file: Option<String> = Setting::key("tls.caFile").ini("Global.ca-file").non_empty(),
        /// A file with the certificate of this client. Only used together with its key.
        pub cert_file: Option<String> = Setting::key("tls.certFile").ini("Global.cert-file").non_empty(),
        /// A file with the key of this client.
        pub key_file: Option<String> = Setting::key("tls.keyFile").ini("Global.key-file").non_empty(),
        /// Whether certificates of the cloud are not verified.
        pub insecure: bool = Setting::key("tls.insecure").ini("Global.tls-insecure").default("false"),
    }
}

settings! {
    /// Which addresses Nodes get.
    pub struct Networking {
        /// Whether IPv6 addresses are left out.
        pub ipv6_disabled: bool = Setting::key("networking.ipv6SupportDisabled")
            .ini("Networking.ipv6-support-disabled").default("false"),
        /// Networks whose addresses are external.
        pub public_networks: Vec<String> = Setting::key("networking.publicNetworkNames")
            .ini("Networking.public-network-name"),
        /// Networks whose addresses are internal. Without any, all are that are not public.
        pub internal_networks: Vec<String> = Setting::key("networking.internalNetworkNames")
            .ini("Networking.internal-network-name"),
        /// Networks in CIDR form, by which addresses are sorted.
        pub address_sort_order: Vec<String> = Setting::key("networking.addressSortOrder")
            .ini("Networking.address-sort-order"),
    }
}

settings! {
    /// What Services get without an annotation that says otherwise.
    pub struct BalancerSettings {
        /// Whether Services get load balancers.
        pub enabled: bool = Setting::key("loadBalancers.enabled").ini("LoadBalancer.enabled").default("true"),
        /// Octavia is the only kind.
        version: Option<String> = Setting::only_ini("LoadBalancer.lb-version")
            .valid(|version: &String| matches!(version.as_str(), "" | "v2"), "`v2`, which is Octavia"),
        /// The provider of Octavia.
        pub provider: String = Setting::key("loadBalancers.provider").ini("LoadBalancer.lb-provider")
            .default("amphora"),
        /// How connections are distributed.
        pub method: String = Setting::key("loadBalancers.method").ini("LoadBalancer.lb-method")
            .default("ROUND_ROBIN"),
        /// The provider's flavor of new load balancers, by ID.
        pub flavor: Option<String> = Setting::key("loadBalancers.flavorId").ini("LoadBalancer.flavor-id").non_empty(),
        /// The availability zone of new load balancers.
        pub availability_zone: Option<String> = Setting::key("loadBalancers.availabilityZone")
            .ini("LoadBalancer.availability-zone").non_empty(),
        /// Whether targets are checked.
        pub create_monitor: bool = Setting::key("loadBalancers.createMonitor").ini("LoadBalancer.create-monitor")
            .default("false"),
        /// The pause between two checks, in whole seconds.
        pub monitor_delay: Duration = Setting::key("loadBalancers.monitorDelay").ini("LoadBalancer.monitor-delay")
            .default("5s"),
        /// How long a check may take, in whole seconds.
        pub monitor_timeout: Duration = Setting::key("loadBalancers.monitorTimeout")
            .ini("LoadBalancer.monitor-timeout").default("3s"),
        /// Successes until a target is in again.
        pub monitor_max_retries: u32 = Setting::key("loadBalancers.monitorMaxRetries")
            .ini("LoadBalancer.monitor-max-retries").default("1"),
        /// Failures until a target is out.
        pub monitor_max_retries_down: u32 = Setting::key("loadBalancers.monitorMaxRetriesDown")
            .ini("LoadBalancer.monitor-max-retries-down").default("3"),
        /// Whether a security group lets load balancers reach the node ports.
        pub manage_security_groups: bool = Setting::key("loadBalancers.manageSecurityGroups")
            .ini("LoadBalancer.manage-security-groups").default("false"),
        /// Whether no Service gets a floating IP, whatever its annotation says.
        pub internal: bool = Setting::key("loadBalancers.internal").ini("LoadBalancer.internal-lb").default("false"),
        /// Whether a load balancer is deleted with all its parts in one call.
        pub cascade_delete: bool = Setting::key("loadBalancers.cascadeDelete").ini("LoadBalancer.cascade-delete")
            .default("true"),
        /// Only Nodes with these labels are targets.
        pub node_selector: Option<String> = Setting::key("loadBalancers.nodeSelector")
            .ini("LoadBalancer.node-selector").non_empty().valid(|text: &String| is_selector(text), "labels such as `a=b,c`"),
        /// The TLS certificate of listeners, by its reference.
        pub tls_container: Option<String> = Setting::key("loadBalancers.defaultTlsContainerRef")
            .ini("LoadBalancer.default-tls-container-ref").non_empty(),
        /// Who keeps TLS certificates.
        pub container_store: ContainerStore = Setting::key("loadBalancers.containerStore")
            .ini("LoadBalancer.container-store").default("barbican"),
        /// Whether a Service with the PROXY protocol gets a hostname in place of its address.
        pub ingress_hostname: bool = Setting::key("loadBalancers.enableIngressHostname")
            .ini("LoadBalancer.enable-ingress-hostname").default("false"),
        /// What stands behind the address in that hostname.
        pub ingress_hostname_suffix: String = Setting::key("loadBalancers.ingressHostnameSuffix")
            .ini("LoadBalancer.ingress-hostname-suffix").default("nip.io"),
        /// How many Services share a load balancer at most.
        pub max_shared: u32 = Setting::key("loadBalancers.maxShared").ini("LoadBalancer.max-shared-lb").default("2"),
        /// Whether a load balancer is built piece by piece.
        pub serial: bool = Setting::key("loadBalancers.serialApiCalls")
            .ini("LoadBalancer.provider-requires-serial-api-calls").default("false"),
    }
    groups {
        /// Networks.
        pub networks: NetworkSettings,
    }
}

settings! {
    /// Where load balancers and their floating IPs are.
    pub struct NetworkSettings {
        /// The subnet of load balancers, by ID.
        pub subnet: Option<String> = Setting::key("loadBalancers.subnetId").ini("LoadBalancer.subnet-id").non_empty(),
        /// The network of load balancers, by ID.
        pub network: Option<String> = Setting::key("loadBalancers.networkId").ini("LoadBalancer.network-id")
            .non_empty(),
        /// The subnet of targets, by ID.
        pub member_subnet: Option<String> = Setting::key("loadBalancers.memberSubnetId")
            .ini("LoadBalancer.member-subnet-id").non_empty(),
        /// The network of floating IPs, by ID. Without it, the first external one.
        pub floating_network: Option<String> = Setting::key("loadBalancers.floatingNetworkId")
            .ini("LoadBalancer.floating-network-id").non_empty(),
        /// The subnet of floating IPs, by ID.
        pub floating_subnet: Option<String> = Setting::key("loadBalancers.floatingSubnetId")
            .ini("LoadBalancer.floating-subnet-id").non_empty(),
        /// Subnets of floating IPs, by a pattern of their names.
        pub floating_subnet_name: Option<String> = Setting::key("loadBalancers.floatingSubnet")
            .ini("LoadBalancer.floating-subnet").non_empty(),
        /// Subnets of floating IPs, by their tags.
        pub floating_subnet_tags: Option<String> = Setting::key("loadBalancers.floatingSubnetTags")
            .ini("LoadBalancer.floating-subnet-tags").non_empty(),
    }
}

settings! {
    /// A class of load balancers, in `[LoadBalancerClass "name"]` or under `loadBalancers.classes.name`.
    pub struct ClassSettings {
        /// The subnet of load balancers, by ID.
        pub subnet: Option<String> = Setting::key("subnetId").ini("LoadBalancerClass.subnet-id").non_empty(),
        /// The network of load balancers, by ID.
        pub network: Option<String> = Setting::key("networkId").ini("LoadBalancerClass.network-id").non_empty(),
        /// The subnet of targets, by ID.
        pub member_subnet: Option<String> = Setting::key("memberSubnetId").ini("LoadBalancerClass.member-subnet-id")
            .non_empty(),
        /// The network of floating IPs, by ID.
        pub floating_network: Option<String> = Setting::key("floatingNetworkId")
            .ini("LoadBalancerClass.floating-network-id").non_empty(),
        /// The subnet of floating IPs, by ID.
        pub floating_subnet: Option<String> = Setting::key("floatingSubnetId")
            .ini("LoadBalancerClass.floating-subnet-id").non_empty(),
        /// Subnets of floating IPs, by a pattern of their names.
        pub floating_subnet_name: Option<String> = Setting::key("floatingSubnet")
            .ini("LoadBalancerClass.floating-subnet").non_empty(),
        /// Subnets of floating IPs, by their tags.
        pub floating_subnet_tags: Option<String> = Setting::key("floatingSubnetTags")
            .ini("LoadBalancerClass.floating-subnet-tags").non_empty(),
    }
}

fn is_search_order(text: &str) -> bool {
    let items: Vec<_> = text.split(',').map(str::trim).collect();
    let is_known = |item: &&str| matches!(*item, "configDrive" | "metadataService");
    items.len() <= 2 && items.iter().all(is_known)
}

fn is_selector(text: &str) -> bool {
    node_selector(text).is_ok()
}

/// Labels as the Go CCM writes them: `key=value`, or a key alone. Anything else is a selector of Kubernetes.
pub(crate) fn node_selector(text: &str) -> Result<LabelSelector, String> {
    let parts = text
        .split(',')
        .map(|part| part.trim().trim_end_matches('='));
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    LabelSelector::parse(&parts.join(","))
}

impl Config {
    /// Reads the settings and reports everything that is wrong with them.
    pub fn read(input: &ProviderInput) -> Result<Self, Problems> {
        let ini = match &input.config {
            ConfigSource::File { text, .. } => Some(Ini::parse(text)?),
            ConfigSource::Own(_) | ConfigSource::None => None,
        };
        let (own, classes) = without_classes(&input.config);
        let mut reader = match (&ini, &own) {
            (Some(ini), _) => SettingsReader::ini(ini, &input.env),
            (None, Some(own)) => SettingsReader::yaml(own, &input.env),
            (None, None) => {
                let message = "a file in the form of cloud.conf is required";
                return Err(Problem::new("--cloud-config", message).into());
            }
        };
        let mut config = Self::load(&mut reader);
        config.files = reader.files();
        // As the Go CCM reads it: only this very word.
        let regional = input.env.get("OS_CCM_REGIONAL");
        config.regional = regional.map_or(config.regional, |text| text == "true");
        let mut problems = Problems::new();
        config.user_agents = problems
            .note(USER_AGENT.all(&input.flags))
            .unwrap_or_default();
        config.read_clouds(input, &mut problems);
        if let Err(others) = Credential::resolve(&config.auth) {
            let named = others.iter().map(|other| {
                if ini.is_some() {
                    other.clone()
                } else {
                    in_own_words(other)
                }
            });
            named.for_each(|problem| problems.push(problem));
        }
        if let Err(others) = reader.finish(()) {
            others.iter().for_each(|other| problems.push(other.clone()));
        }
        match &ini {
            Some(ini) => config.read_ini_classes(ini, input, &mut problems),
            None => config.read_own_classes(&classes, input, &mut problems),
        }
        problems.into_result()?;
        Ok(config)
    }

    /// What is not given is taken from an entry of `clouds.yaml`, if that is asked for.
    fn read_clouds(&mut self, input: &ProviderInput, problems: &mut Problems) {
        if !self.use_clouds && self.cloud.is_none() {
            return;
        }
        match CloudsYaml::find(
            self.clouds_file.as_deref(),
            self.cloud.as_deref(),
            &input.env,
        ) {
            Ok(found) => {
                self.files.extend(found.files.iter().cloned());
                found.merge_into(&mut self.auth, self.cloud.is_some());
            }
            Err(problem) => problems.push(problem),
        }
    }

    fn read_ini_classes(&mut self, ini: &Ini, input: &ProviderInput, problems: &mut Problems) {
        for name in ini.subsections(CLASS_SECTION) {
            let mut reader = SettingsReader::ini_section(ini, Some(name), &input.env);
            let class = ClassSettings::load(&mut reader);
            gather(problems, name, reader.finish(()));
            self.classes.insert(name.to_owned(), class);
        }
    }

    fn read_own_classes(
        &mut self,
        classes: &Value,
        input: &ProviderInput,
        problems: &mut Problems,
    ) {
        for (name, class) in classes.as_object().into_iter().flatten() {
            let mut reader = SettingsReader::yaml(class, &input.env);
            let class = ClassSettings::load(&mut reader);
            gather(problems, name, reader.finish(()));
            self.classes.insert(name.clone(), class);
        }
    }

    /// Every key, for the reference page.
    pub(crate) fn docs() -> Vec<KeyDoc> {
        let mut classes = ClassSettings::keys();
        classes.retain(|doc| doc.name.contains('.'));
        by_name([Self::keys(), classes, vec![USER_AGENT.doc()]])
    }
}

/// A problem with the names of our own form in place of those of `cloud.conf`.
fn in_own_words(problem: &Problem) -> Problem {
    let mut text = format!("`{}`: {}", problem.key, problem.message);
    let mut own = "";
    for doc in AuthSettings::keys() {
        match (doc.place, doc.name.strip_prefix("Global.")) {
            (KeyPlace::Config, _) if !doc.name.ends_with("File") => own = doc.name,
            (KeyPlace::File, Some(name)) => {
                text = text.replace(&format!("`{name}`"), &format!("`{own}`"));
            }
            _ => {}
        }
    }
    let (key, message) = text.split_once(": ").unwrap_or_default();
    Problem::new(key.trim_matches('`'), message)
}

fn gather(problems: &mut Problems, place: &str, read: Result<(), Problems>) {
    if let Err(others) = read {
        problems.extend_under(place, others);
    }
}

/// Our own form without its classes, which have names of their own choice, and those.
fn without_classes(source: &ConfigSource) -> (Option<Value>, Value) {
    let ConfigSource::Own(own) = source else {
        return (None, Value::Null);
    };
    let mut own = own.clone();
    let classes = own.pointer_mut("/loadBalancers");
    let classes = classes
        .and_then(Value::as_object_mut)
        .and_then(|lb| lb.remove("classes"));
    (Some(own), classes.unwrap_or_default())
}

#[cfg(test)]
mod tests;
