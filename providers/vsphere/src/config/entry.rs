//! The section of one vCenter, and what it inherits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cloudkeel_api::{Problem, Problems, Secret};
use cloudkeel_toolkit::{Setting, Settings as _, SettingsReader, settings};
use serde_json::json;

use super::{Family, Form, Global, SecretSource, VCenterConfig, families, merge};

/// How long one attempt of a call may take. Lists of large inventories take their time.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many objects one answer of a list has.
const PAGE_SIZE: u32 = 1000;

settings! {
    /// The section of a vCenter, by any name.
    pub(crate) struct Entry {
        /// Its name or address. In INI by default the name of the section.
        pub(super) server: Option<String> = Setting::key("vcenter.*.server").ini("VirtualCenter.server").non_empty(),
        /// The user.
        user: Option<String> = Setting::key("vcenter.*.user").ini("VirtualCenter.user").non_empty(),
        /// The password.
        password: Option<Secret> = Setting::key("vcenter.*.password").ini("VirtualCenter.password").non_empty(),
        /// The port.
        port: Option<u16> = Setting::key("vcenter.*.port").ini("VirtualCenter.port"),
        /// Whether its certificate is not verified. It cannot be turned off for one if it is on for all.
        insecure: bool = Setting::key("vcenter.*.insecureFlag").ini("VirtualCenter.insecure-flag").default("false"),
        /// Its datacenters, by name, inventory path or reference. Those of `global` if there are none.
        datacenters: Vec<String> = Setting::key("vcenter.*.datacenters").ini("VirtualCenter.datacenters"),
        /// How often a call is tried that fails for a reason that may pass.
        attempts: Option<u32> = Setting::key("vcenter.*.soapRoundtripCount")
            .ini("VirtualCenter.soap-roundtrip-count"),
        /// A file with CA certificates that are trusted besides those of the system, in PEM.
        ca_file: Option<String> = Setting::key("vcenter.*.caFile").ini("VirtualCenter.ca-file").non_empty(),
        /// The thumbprint, SHA-1 or SHA-256, of its certificate.
        thumbprint: Option<String> = Setting::key("vcenter.*.thumbprint").ini("VirtualCenter.thumbprint").non_empty(),
        /// The Secret with its user and password. Needs its namespace too.
        secret_name: Option<String> = Setting::key("vcenter.*.secretName").ini("VirtualCenter.secret-name")
            .non_empty(),
        /// The namespace of the Secret.
        secret_namespace: Option<String> = Setting::key("vcenter.*.secretNamespace")
            .ini("VirtualCenter.secret-namespace").non_empty(),
        /// The families of addresses that its Nodes have, the most important first.
        ip_family: Vec<Family> = Setting::key("vcenter.*.ipFamily").ini("VirtualCenter.ip-family"),
    }
}

type Env = BTreeMap<String, String>;

impl Form {
    /// The sections of vCenters, each with its place for messages.
    pub(super) fn entries(
        &self,
        env: &Env,
        global: &Global,
        problems: &mut Problems,
    ) -> Vec<(String, Entry)> {
        let mut entries = match self {
            Self::Ini(ini) => {
                let names = ini.subsections("VirtualCenter");
                let section = |name: &&str| {
                    let reader = SettingsReader::ini_section(ini, Some(name), env);
                    let place = format!("[VirtualCenter {name:?}]");
                    let mut entry = Entry::read(reader, &place, problems);
                    // The name of a section is the server's, unless it is a tenant's.
                    entry.server.get_or_insert_with(|| (*name).to_owned());
                    (place, entry)
                };
                names.iter().map(section).collect::<Vec<_>>()
            }
            Self::Yaml {
                vcenters, is_own, ..
            } => {
                let mut entries = Vec::new();
                for (name, value) in vcenters {
                    let value = json!({"vcenter": {"*": value}});
                    let place = format!("vcenter.{name}");
                    let reader = Self::yaml_reader(&value, *is_own, env);
                    let entry = Entry::read(reader, &place, problems);
                    if entry.server.is_none() {
                        let place = format!("{place}.server");
                        let message = "is required: the name or address of the vCenter";
                        problems.push(Problem::new(place, message));
                    }
                    entries.push((place, entry));
                }
                entries
            }
        };
        let has = |server: &String| {
            let mut entries = entries.iter();
            entries.any(|(_, entry)| entry.server.as_ref() == Some(server))
        };
        if let Some(server) = global.server.as_ref().filter(|server| !has(server)) {
            let entry = Entry {
                server: Some(server.clone()),
                ..Entry::default()
            };
            entries.push(("global".to_owned(), entry));
        }
        if entries.is_empty() {
            let key = match self {
                Self::Ini(_) => "[VirtualCenter \"<server>\"]",
                Self::Yaml { .. } => "vcenter",
            };
            let message =
                "is required: no vCenter is configured (it stands beside `global`, not in it)";
            problems.push(Problem::new(key, message));
        }
        entries
    }
}

impl Entry {
    fn read(mut reader: SettingsReader<'_>, place: &str, problems: &mut Problems) -> Self {
        let entry = Self::load(&mut reader);
        let mut own = Problems::new();
        merge(&mut own, reader.finish(()));
        for problem in own.iter() {
            let key = problem.key.trim_start_matches("vcenter.*.");
            problems.push(Problem {
                key: format!("{place}.{key}"),
                ..problem.clone()
            });
        }
        entry
    }

    /// The vCenter with what it inherits. Problems name keys of its section.
    pub(super) fn resolve(
        self,
        global: &Global,
        secret: Option<&SecretSource>,
        files: &mut Vec<PathBuf>,
    ) -> Result<VCenterConfig, Problems> {
        let mut problems = Problems::new();
        let own_secret = self.secret_name.zip(self.secret_namespace);
        let own_secret =
            own_secret.map(|(name, namespace)| SecretSource::Kubernetes { namespace, name });
        let secret = own_secret.or_else(|| secret.cloned());
        let user = self.user.or_else(|| global.user.clone());
        let password = self.password.or_else(|| global.password.clone());
        if secret.is_none() {
            let missing = "is required, here or in `global`, or a Secret";
            if user.is_none() {
                problems.push(Problem::new("user", missing));
            }
            if password.is_none() {
                problems.push(Problem::new("password", missing));
            }
        }
        let ca_file = self.ca_file.or_else(|| global.ca_file.clone());
        let ca_pem = ca_file.and_then(|path| match std::fs::read_to_string(&path) {
            Ok(pem) => {
                files.push(path.into());
                Some(pem)
            }
            Err(error) => {
                let expected = format!("a readable file: {error}");
                problems.push(Problem::unexpected("caFile", path, expected));
                None
            }
        });
        let thumbprint = self.thumbprint.or_else(|| global.thumbprint.clone());
        let thumbprint = thumbprint.and_then(|text| match text.parse() {
            Ok(thumbprint) => Some(thumbprint),
            Err(expected) => {
                problems.push(Problem::unexpected("thumbprint", text, expected));
                None
            }
        });
        let or_global = |own: Vec<String>| match own.as_slice() {
            [] => global.datacenters.clone(),
            _ => own,
        };
        problems.into_result()?;
        Ok(VCenterConfig {
            server: self.server.unwrap_or_default(),
            port: self.port.unwrap_or(global.port),
            login: user.zip(password),
            secret,
            insecure: self.insecure || global.insecure,
            ca_pem,
            thumbprint,
            datacenters: or_global(self.datacenters),
            attempts: self.attempts.unwrap_or(global.attempts).max(1),
            attempt_timeout: ATTEMPT_TIMEOUT,
            page_size: PAGE_SIZE,
            families: match self.ip_family.as_slice() {
                [] => global.families(),
                own => families(own),
            },
        })
    }
}
