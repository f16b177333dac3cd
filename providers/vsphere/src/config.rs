//! The settings of vSphere: the Go CCM's file in INI or YAML, or our own form, which is that YAML.

pub(crate) mod credentials;
mod entry;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudkeel_api::Documented as _;
use cloudkeel_api::{
    ConfigSource, FlagKey, IpFamily, KeyDoc, Problem, Problems, ProviderInput, Secret, check_label,
};
use cloudkeel_http::{Thumbprint, TlsSettings};
use cloudkeel_toolkit::settings::{Ini, by_name};
use cloudkeel_toolkit::{Setting, Settings, SettingsReader, keywords, settings};
use ipnet::IpNet;
use serde_json::Value;

use self::entry::Entry;

/// Where the Go CCM looks for credentials if its file names no other place.
const DEFAULT_SECRETS: &str = "/etc/cloud/secrets";

/// Labels for every Node.
const NODE_LABELS: FlagKey<BTreeMap<String, String>> = FlagKey::new(
    "node-labels",
    "Labels for all Nodes of vSphere, written when they are initialized: `key=value,...`.",
);

keywords! {
    /// A family of addresses.
    pub enum Family {
        /// IPv4.
        Ipv4 = "ipv4",
        /// IPv6.
        Ipv6 = "ipv6",
    }
}

settings! {
    /// Tags that name zones and regions.
    pub struct LabelSettings {
        /// The category of tags that name zones. Needs `region` too.
        pub zone: Option<String> = Setting::key("labels.zone").ini("Labels.zone").env("VSPHERE_LABEL_ZONE")
            .non_empty(),
        /// The category of tags that name regions. Needs `zone` too.
        pub region: Option<String> = Setting::key("labels.region").ini("Labels.region").env("VSPHERE_LABEL_REGION")
            .non_empty(),
    }
}

settings! {
    /// Which addresses Nodes get.
    pub struct NodeNetworks {
        /// Networks of the internal address, the most important first.
        pub internal_cidrs: Vec<IpNet> = Setting::key("nodes.internalNetworkSubnetCidr")
            .ini("Nodes.internal-network-subnet-cidr").env("VSPHERE_NODES_INTERNAL_NETWORK_SUBNET_CIDR"),
        /// Networks of the external address, the most important first.
        pub external_cidrs: Vec<IpNet> = Setting::key("nodes.externalNetworkSubnetCidr")
            .ini("Nodes.external-network-subnet-cidr").env("VSPHERE_NODES_EXTERNAL_NETWORK_SUBNET_CIDR"),
        /// The name of the network, in vSphere, of the internal address.
        pub internal_name: Option<String> = Setting::key("nodes.internalVmNetworkName")
            .ini("Nodes.internal-vm-network-name").env("VSPHERE_NODES_INTERNAL_VM_NETWORK_NAME").non_empty(),
        /// The name of the network, in vSphere, of the external address.
        pub external_name: Option<String> = Setting::key("nodes.externalVmNetworkName")
            .ini("Nodes.external-vm-network-name").env("VSPHERE_NODES_EXTERNAL_VM_NETWORK_NAME").non_empty(),
        /// Networks whose addresses are never internal ones, such as those of virtual addresses.
        pub exclude_internal: Vec<IpNet> = Setting::key("nodes.excludeInternalNetworkSubnetCidr")
            .ini("Nodes.exclude-internal-network-subnet-cidr"),
        /// Networks whose addresses are never external ones.
        pub exclude_external: Vec<IpNet> = Setting::key("nodes.excludeExternalNetworkSubnetCidr")
            .ini("Nodes.exclude-external-network-subnet-cidr"),
    }
}

settings! {
    /// What holds for every vCenter that does not say otherwise.
    struct Global {
        /// The user.
        user: Option<String> = Setting::key("global.user").ini("Global.user").non_empty(),
        /// The password.
        password: Option<Secret> = Setting::key("global.password").ini("Global.password").non_empty(),
        /// A vCenter by its address, if it has no section of its own.
        server: Option<String> = Setting::key("global.server").ini("Global.server").non_empty(),
        /// The port.
        port: u16 = Setting::key("global.port").ini("Global.port").default("443"),
        /// Whether certificates of vCenters are not verified.
        insecure: bool = Setting::key("global.insecureFlag").ini("Global.insecure-flag").default("false"),
        /// Datacenters, by name, inventory path or reference such as `Datacenter:datacenter-3`. All if there are none.
        datacenters: Vec<String> = Setting::key("global.datacenters").ini("Global.datacenters"),
        /// How often a call is tried that fails for a reason that may pass.
        attempts: u32 = Setting::key("global.soapRoundtripCount").ini("Global.soap-roundtrip-count").default("3"),
        /// A file with CA certificates that are trusted besides those of the system, in PEM.
        ca_file: Option<String> = Setting::key("global.caFile").ini("Global.ca-file").non_empty(),
        /// The thumbprint, SHA-1 or SHA-256, of a certificate that is trusted.
        thumbprint: Option<String> = Setting::key("global.thumbprint").ini("Global.thumbprint").non_empty(),
        /// The Secret with users and passwords. Needs its namespace too.
        secret_name: Option<String> = Setting::key("global.secretName").ini("Global.secret-name")
            .env("VSPHERE_SECRET_NAME").non_empty(),
        /// The namespace of the Secret.
        secret_namespace: Option<String> = Setting::key("global.secretNamespace").ini("Global.secret-namespace")
            .env("VSPHERE_SECRET_NAMESPACE").non_empty(),
        /// A folder whose files have the names and values of such a Secret.
        secrets_directory: Option<String> = Setting::key("global.secretsDirectory").ini("Global.secrets-directory")
            .env("VSPHERE_SECRETS_DIRECTORY").non_empty(),
        /// The families of addresses that a Node has, the most important first. `ipv4` if there are none.
        ip_family: Vec<Family> = Setting::key("global.ipFamily").ini("Global.ip-family"),
    }
}

settings! {
    /// What has no section of its own.
    struct Others {
        /// Labels for all Nodes, as with `--node-labels`.
        node_labels: Option<BTreeMap<String, String>> = Setting::key("nodeLabels"),
        /// Whether Nodes are kept whose virtual machine is gone. Beside a file of the Go CCM, the variable
        /// `SKIP_NODE_DELETION` says so with any value.
        skip_node_deletion: bool = Setting::key("skipNodeDeletion").default("false"),
    }
}

/// Where credentials are, besides the settings themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A Secret of the cluster.
    Kubernetes {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A folder of files.
    Directory(PathBuf),
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubernetes { namespace, name } => write!(f, "Secret {namespace}/{name}"),
            Self::Directory(path) => write!(f, "{}", path.display()),
        }
    }
}

/// One vCenter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VCenterConfig {
    /// Its name or address.
    pub server: String,
    /// Its port.
    pub port: u16,
    /// User and password of the settings.
    pub login: Option<(String, Secret)>,
    /// Where credentials are that come before those.
    pub secret: Option<SecretSource>,
    /// Whether its certificate is not verified.
    pub insecure: bool,
    /// CA certificates, in PEM.
    pub ca_pem: Option<String>,
    /// The thumbprint of its certificate.
    pub thumbprint: Option<Thumbprint>,
    /// Its datacenters; all if there are none.
    pub datacenters: Vec<String>,
    /// How often a call is tried.
    pub attempts: u32,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    /// How many objects one answer of a list has.
    pub page_size: u32,
    /// The families of addresses that a Node has.
    pub families: Vec<IpFamily>,
}

impl VCenterConfig {
    /// What it is called in messages: the server, and the port if it is not the usual one.
    pub(crate) fn name(&self) -> String {
        match self.port {
            443 => self.server.clone(),
            port => format!("{}:{port}", self.server),
        }
    }

    /// Where its APIs are.
    pub(crate) fn url(&self) -> String {
        let (server, port) = (&self.server, self.port);
        if server.contains(':') && !server.starts_with('[') {
            return format!("https://[{server}]:{port}");
        }
        format!("https://{server}:{port}")
    }

    pub(crate) fn tls(&self) -> TlsSettings {
        let mut tls = TlsSettings::default().insecure(self.insecure);
        if let Some(pem) = &self.ca_pem {
            tls = tls.trust(pem.as_str());
        }
        if let Some(thumbprint) = &self.thumbprint {
            tls = tls.trust_thumbprint(thumbprint.clone());
        }
        tls
    }
}

/// The settings of vSphere.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The vCenters, at least one.
    pub vcenters: Vec<VCenterConfig>,
    /// Tags that name zones and regions.
    pub labels: LabelSettings,
    /// Which addresses Nodes get.
    pub nodes: NodeNetworks,
    /// Labels for all Nodes.
    pub node_labels: BTreeMap<String, String>,
    /// Whether Nodes are kept whose virtual machine is gone.
    pub skip_node_deletion: bool,
    /// Files that settings were read from.
    pub files: Vec<PathBuf>,
}

/// A file as it was read, before anything is made of it.
enum Form {
    Ini(Ini),
    Yaml {
        file: Value,
        /// Sections of vCenters by their names.
        vcenters: Vec<(String, Value)>,
        is_own: bool,
    },
}

impl Config {
    /// Reads the settings and reports everything that is wrong with them.
    pub fn read(input: &ProviderInput) -> Result<Self, Problems> {
        let form = Form::read(&input.config)?;
        let mut problems = Problems::new();
        let mut reader = form.reader(&input.env);
        let global = Global::load(&mut reader);
        let (labels, nodes) = (
            LabelSettings::load(&mut reader),
            NodeNetworks::load(&mut reader),
        );
        let others = Others::load(&mut reader);
        let secret = global.secret(&mut reader);
        merge(&mut problems, reader.finish(()));
        let entries = form.entries(&input.env, &global, &mut problems);
        let mut files = Vec::new();
        let mut vcenters = Vec::new();
        for (place, entry) in entries {
            let resolved = entry.resolve(&global, secret.as_ref(), &mut files);
            match resolved {
                Ok(vcenter) => vcenters.push(vcenter),
                Err(others) => problems.extend_under(&place, others),
            }
        }
        let node_labels = problems.note(NODE_LABELS.get(&input.flags)).flatten();
        let node_labels = node_labels.or(others.node_labels).unwrap_or_default();
        for (key, value) in &node_labels {
            if let Err(wrong) = check_label(key, value) {
                problems.push(Problem::new(
                    format!("node label {key}={value}"),
                    wrong.to_string(),
                ));
            }
        }
        problems.into_result()?;
        if let Some(SecretSource::Directory(path)) = &secret {
            files.extend(credentials::files_in(path));
        }
        Ok(Self {
            vcenters,
            labels,
            nodes,
            node_labels,
            skip_node_deletion: others.skip_node_deletion
                || (!form.is_own() && input.env.contains_key("SKIP_NODE_DELETION")),
            files,
        })
    }

    /// Every key, for the reference page.
    pub(crate) fn docs() -> Vec<KeyDoc> {
        by_name([
            Global::keys(),
            Entry::keys(),
            LabelSettings::keys(),
            NodeNetworks::keys(),
            Others::keys(),
            vec![NODE_LABELS.doc()],
        ])
    }
}

/// Adds the problems of another reader.
fn merge(problems: &mut Problems, read: Result<(), Problems>) {
    if let Err(others) = read {
        others.iter().for_each(|it| problems.push(it.clone()));
    }
}

impl Global {
    /// Which Secret, or folder, holds for vCenters without one of their own. As in the Go CCM, a folder comes before
    /// a Secret, also the default one if it exists.
    fn secret(&self, reader: &mut SettingsReader<'_>) -> Option<SecretSource> {
        let default = || Some(DEFAULT_SECRETS.to_owned()).filter(|path| Path::new(path).is_dir());
        if let Some(path) = self.secrets_directory.clone().or_else(default) {
            return Some(SecretSource::Directory(path.into()));
        }
        let name = self.secret_name.clone()?;
        let Some(namespace) = self.secret_namespace.clone() else {
            let message = format!("is required with {}", reader.name(&Self::secret_name()));
            reader.problem(&Self::secret_namespace(), message);
            return None;
        };
        Some(SecretSource::Kubernetes { namespace, name })
    }

    fn families(&self) -> Vec<IpFamily> {
        families(&self.ip_family)
    }
}

/// IPv4 if there are none.
fn families(given: &[Family]) -> Vec<IpFamily> {
    let family = |family: &Family| match family {
        Family::Ipv4 => IpFamily::V4,
        Family::Ipv6 => IpFamily::V6,
    };
    match given {
        [] => vec![IpFamily::V4],
        given => given.iter().map(family).collect(),
    }
}

impl Form {
    fn read(source: &ConfigSource) -> Result<Self, Problems> {
        match source {
            ConfigSource::Own(value) => Ok(Self::yaml(value.clone(), true)),
            ConfigSource::File { path, text } => Self::parse(path, text),
            ConfigSource::None => {
                let message = "is required: a file with the vCenters, in INI or YAML";
                Err(Problem::new("--cloud-config", message).into())
            }
        }
    }

    /// As the Go CCM: YAML if it is that, else INI.
    fn parse(path: &Path, text: &str) -> Result<Self, Problems> {
        if text.trim().is_empty() {
            let message = format!("{} is empty", path.display());
            return Err(Problem::new("--cloud-config", message).into());
        }
        let yaml = serde_saphyr::from_str::<Value>(text).ok();
        match yaml.filter(Value::is_object) {
            Some(value) => Ok(Self::yaml(value, false)),
            None => Ok(Self::Ini(Ini::parse(text)?)),
        }
    }

    fn yaml(mut file: Value, is_own: bool) -> Self {
        let vcenters = file.as_object_mut().and_then(|file| file.remove("vcenter"));
        let vcenters = match vcenters {
            Some(Value::Object(entries)) => entries.into_iter().collect(),
            _ => Vec::new(),
        };
        Self::Yaml {
            file,
            vcenters,
            is_own,
        }
    }

    const fn is_own(&self) -> bool {
        matches!(self, Self::Yaml { is_own: true, .. })
    }

    fn reader<'a>(&'a self, env: &'a BTreeMap<String, String>) -> SettingsReader<'a> {
        match self {
            Self::Ini(ini) => SettingsReader::ini(ini, env),
            Self::Yaml { file, is_own, .. } => Self::yaml_reader(file, *is_own, env),
        }
    }

    fn yaml_reader<'a>(
        value: &'a Value,
        is_own: bool,
        env: &'a BTreeMap<String, String>,
    ) -> SettingsReader<'a> {
        if is_own {
            SettingsReader::yaml(value, env)
        } else {
            SettingsReader::go_yaml(value, env)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
