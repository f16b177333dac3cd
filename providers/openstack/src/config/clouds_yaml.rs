//! `clouds.yaml`, as OpenStack's own clients read it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cloudkeel_api::{KeyValue as _, Problem, Secret};
use serde_json::Value;

use super::{AuthSettings, Interface};

const KEY: &str = "clouds-file";

/// One entry of `clouds.yaml`, and the files that it was read from.
#[derive(Debug)]
pub(crate) struct CloudsYaml {
    entry: Value,
    pub(crate) files: Vec<PathBuf>,
}

type Env = BTreeMap<String, String>;

impl CloudsYaml {
    /// Finds the file and the entry: the one of this name, else `OS_CLOUD`, else the only one.
    pub(crate) fn find(file: Option<&str>, name: Option<&str>, env: &Env) -> Result<Self, Problem> {
        let (path, mut clouds) = Self::file(file, env)?;
        let mut files = vec![path.clone()];
        // Secrets may stand in a file of their own beside it.
        let beside = |name: &str| path.with_file_name(name);
        for (extra, is_public) in [("secure.yaml", false), ("clouds-public.yaml", true)] {
            let extra = beside(extra);
            if let Ok(text) = std::fs::read_to_string(&extra) {
                let more = parse(&extra, &text)?;
                merge_file(&mut clouds, &more, is_public);
                files.push(extra);
            }
        }
        let entry = choose(
            &clouds,
            name.or_else(|| env.get("OS_CLOUD").map(String::as_str)),
        )?;
        Ok(Self { entry, files })
    }

    fn file(file: Option<&str>, env: &Env) -> Result<(PathBuf, Value), Problem> {
        let named = file.map(PathBuf::from);
        let named = named.or_else(|| env.get("OS_CLIENT_CONFIG_FILE").map(PathBuf::from));
        let home = env
            .get("HOME")
            .map(|home| Path::new(home).join(".config/openstack"));
        let folders = [
            Some(PathBuf::from(".")),
            home,
            Some(PathBuf::from("/etc/openstack")),
        ];
        let usual = folders.into_iter().flatten();
        let usual =
            usual.flat_map(|folder| ["clouds.yaml", "clouds.yml"].map(|name| folder.join(name)));
        let places: Vec<PathBuf> = match named {
            Some(named) => vec![named],
            None => usual.collect(),
        };
        for place in &places {
            if let Ok(text) = std::fs::read_to_string(place) {
                let clouds = parse(place, &text)?;
                return Ok((place.clone(), clouds));
            }
        }
        let places: Vec<_> = places
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        let message = format!(
            "there is no readable clouds.yaml: expected one of {}",
            places.join(", ")
        );
        Err(Problem::new(KEY, message))
    }

    /// Gives settings that are not set yet. If the entry was named, its credential replaces the one that is set,
    /// as in the Go CCM.
    pub(crate) fn merge_into(&self, auth: &mut AuthSettings, is_named: bool) {
        if is_named {
            let kept = auth.clone();
            *auth = AuthSettings {
                region: kept.region,
                interface: kept.interface,
                ca_file: kept.ca_file,
                cert_file: kept.cert_file,
                key_file: kept.key_file,
                insecure: kept.insecure,
                trust_id: kept.trust_id,
                trustee_id: kept.trustee_id,
                trustee_password: kept.trustee_password,
                ..AuthSettings::default()
            };
        }
        let text = |place: &str| {
            let value = self.entry.pointer(place)?;
            let text = value.as_str().map(str::to_owned);
            text.or_else(|| value.as_i64().map(|number| number.to_string()))
                .filter(|text| !text.is_empty())
        };
        let in_auth = |name: &str| text(&format!("/auth/{name}"));
        let either = |one: &str, other: &str| in_auth(one).or_else(|| in_auth(other));
        let secret = |name: &str| in_auth(name).map(Secret::from);
        fill(&mut auth.url, in_auth("auth_url"));
        fill(&mut auth.user_id, in_auth("user_id"));
        fill(&mut auth.username, in_auth("username"));
        fill(&mut auth.password, secret("password"));
        fill(&mut auth.token, secret("token"));
        fill(&mut auth.project_id, either("project_id", "tenant_id"));
        fill(
            &mut auth.project_name,
            either("project_name", "tenant_name"),
        );
        fill(&mut auth.domain_id, either("domain_id", "default_domain"));
        fill(&mut auth.domain_name, in_auth("domain_name"));
        fill(&mut auth.user_domain_id, in_auth("user_domain_id"));
        fill(&mut auth.user_domain_name, in_auth("user_domain_name"));
        fill(&mut auth.project_domain_id, in_auth("project_domain_id"));
        fill(
            &mut auth.project_domain_name,
            in_auth("project_domain_name"),
        );
        fill(&mut auth.app_id, in_auth("application_credential_id"));
        fill(&mut auth.app_name, in_auth("application_credential_name"));
        fill(
            &mut auth.app_secret,
            secret("application_credential_secret"),
        );
        fill(&mut auth.region, text("/region_name"));
        fill(&mut auth.ca_file, text("/cacert"));
        fill(&mut auth.cert_file, text("/cert"));
        fill(&mut auth.key_file, text("/key"));
        let interface = text("/interface").or_else(|| text("/endpoint_type"));
        let interface =
            interface.and_then(|word| Interface::parse(word.trim_end_matches("URL")).ok());
        fill(&mut auth.interface, interface);
    }
}

fn fill<T>(setting: &mut Option<T>, value: Option<T>) {
    if setting.is_none() {
        *setting = value;
    }
}

fn parse(path: &Path, text: &str) -> Result<Value, Problem> {
    serde_saphyr::from_str(text).map_err(|_| {
        // The error of the parser may show a password.
        Problem::unexpected(
            KEY,
            path.display().to_string(),
            "a file in YAML with `clouds:`",
        )
    })
}

/// Adds what another file says about the entries; `clouds-public.yaml` says it about their profiles.
fn merge_file(clouds: &mut Value, more: &Value, is_public: bool) {
    let Some(entries) = clouds.pointer_mut("/clouds").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, entry) in entries {
        let other = if is_public {
            let profile = entry.get("profile").or_else(|| entry.get("cloud"));
            let profile = profile.and_then(Value::as_str).unwrap_or_default();
            more.pointer("/public-clouds")
                .and_then(|all| all.get(profile))
        } else {
            more.pointer("/clouds").and_then(|all| all.get(name))
        };
        if let Some(other) = other {
            merge(entry, other);
        }
    }
}

/// What is there wins.
fn merge(entry: &mut Value, other: &Value) {
    match (entry, other) {
        (Value::Object(entry), Value::Object(other)) => {
            for (key, value) in other {
                merge(entry.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (entry @ Value::Null, other) => entry.clone_from(other),
        _ => {}
    }
}

fn choose(clouds: &Value, name: Option<&str>) -> Result<Value, Problem> {
    let entries = clouds.pointer("/clouds").and_then(Value::as_object);
    let entries = entries.ok_or_else(|| Problem::new(KEY, "has no `clouds:`"))?;
    let known = || {
        let names: Vec<_> = entries.keys().map(String::as_str).collect();
        names.join(", ")
    };
    let found = match name {
        Some(name) => entries.get(name).ok_or_else(|| {
            let expected = format!("an entry of clouds.yaml, which has {}", known());
            Problem::unexpected("cloud", name, expected)
        }),
        None if entries.len() == 1 => entries
            .values()
            .next()
            .ok_or_else(|| Problem::new(KEY, "is empty")),
        None => {
            let message = format!("is required, because clouds.yaml has several: {}", known());
            Err(Problem::new("cloud", message))
        }
    };
    found.cloned()
}
