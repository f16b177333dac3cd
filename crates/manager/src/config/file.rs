//! cloudkeel's own configuration file: one list of clouds. [`ConfigReader`] reports unknown keys.

use std::collections::BTreeSet;

use cloudkeel_api::{
    ConfigKey, ConfigReader, ConfigSource, Documented, KeyDoc, KeyValue, LabelSelector, Problem,
    Problems, TargetBy, is_label_value, nearest,
};
use cloudkeel_controllers::clouds::NodeMatcher;
use serde_json::Value;

use super::{BalancerScope, CloudEntry, NodeScope, TargetScope};

/// The `apiVersion` of the file.
pub const API_VERSION: &str = "cloudkeel.dev/v1";
/// The `kind` of the file.
pub const KIND: &str = "CloudConfig";

const NAME: ConfigKey<String> = ConfigKey::new(
    "name",
    "Name of the cloud; also its metric label and Node label.",
)
.required();
const PROVIDER: ConfigKey<String> =
    ConfigKey::new("provider", "The provider, as in --cloud-provider.").required();
const SELECTOR: ConfigKey<LabelSelector> = ConfigKey::new(
    "nodes.selector",
    "Nodes without a provider ID that match this label selector belong to this cloud.",
);
const MATCH: ConfigKey<Vec<NodeMatcher>> = ConfigKey::new(
    "nodes.match",
    "How the machine of a Node without a provider ID of this cloud is found, in this order: `providerID`, `systemUUID`, \
     `internalIP`, `name`, `fqdn`, `shortName`. Without it, as the provider does.",
);
const DEFAULT: ConfigKey<bool> = ConfigKey::new(
    "loadBalancers.default",
    "Services without a class belong to this cloud. With one cloud that is the default.",
);
const CLASS: ConfigKey<Vec<String>> = ConfigKey::new(
    "loadBalancers.class",
    "Services of this loadBalancerClass belong to this cloud; a list for several.",
);
const TARGET_CLOUDS: ConfigKey<Vec<String>> = ConfigKey::new(
    "loadBalancers.targets.clouds",
    "Its load balancers send traffic to Nodes of these clouds; by default to its own.",
);
const TARGET_BY: ConfigKey<Reach> = ConfigKey::new(
    "loadBalancers.targets.by",
    "How Nodes are reached: `machine` or `address`; another cloud's always by address.",
)
.with_default("machine");
const CONFIG: ConfigKey<Settings> = ConfigKey::new(
    "config",
    "Settings of the provider; see its reference page.",
);

/// Every key of a cloud, for the reference page.
pub fn key_docs() -> Vec<KeyDoc> {
    let keys: [&dyn Documented; 9] = [
        &NAME,
        &PROVIDER,
        &SELECTOR,
        &MATCH,
        &DEFAULT,
        &CLASS,
        &TARGET_CLOUDS,
        &TARGET_BY,
        &CONFIG,
    ];
    keys.into_iter().map(Documented::doc).collect()
}

struct Reach(TargetBy);

impl KeyValue for Reach {
    const TYPE: &'static str = "choice";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "machine" => Ok(Self(TargetBy::Machine)),
            "address" => Ok(Self(TargetBy::Address)),
            _ => Err("`machine` or `address`".to_owned()),
        }
    }
}

/// The settings of a provider, which only the provider can interpret.
struct Settings(Value);

impl KeyValue for Settings {
    const TYPE: &'static str = "map";
    /// Settings may contain secrets, so an invalid one is never printed.
    const SECRET: bool = true;

    fn parse(_text: &str) -> Result<Self, String> {
        Err("a map of keys".to_owned())
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        match value {
            Value::Object(_) => Ok(Self(value.clone())),
            _ => Err("a map of keys".to_owned()),
        }
    }
}

/// The file, parsed and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudFile {
    /// The clouds, in their order.
    pub clouds: Vec<CloudEntry>,
}

impl CloudFile {
    /// Whether a parsed file declares itself as cloudkeel's own.
    pub fn is_ours(value: &Value) -> bool {
        value
            .get("apiVersion")
            .and_then(Value::as_str)
            .is_some_and(|version| version.starts_with("cloudkeel.dev/"))
    }

    /// Reads the file and reports all problems. `known` are the providers that are compiled in.
    pub fn read(value: &Value, known: &[&str]) -> Result<Self, Problems> {
        let mut problems = Problems::new();
        check_head(value, &mut problems);
        let entries = match value.get("clouds") {
            Some(Value::Array(entries)) if !entries.is_empty() => entries.as_slice(),
            _ => {
                problems.push(Problem::new(
                    "clouds",
                    "expected a list of at least one cloud",
                ));
                &[]
            }
        };
        let mut clouds = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            match read_cloud(entry, known) {
                Ok(cloud) => clouds.push(cloud),
                Err(wrong) => problems.extend_under(&format!("clouds[{index}]"), wrong),
            }
        }
        if clouds.len() == entries.len() {
            check_together(&mut clouds, &mut problems);
        }
        problems.into_result()?;
        Ok(Self { clouds })
    }
}

fn check_head(value: &Value, problems: &mut Problems) {
    for (key, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        match value.get(key) {
            Some(Value::String(text)) if text == expected => {}
            Some(other) => {
                let shown = other
                    .as_str()
                    .map_or_else(|| other.to_string(), str::to_owned);
                problems.push(Problem::unexpected(key, shown, format!("`{expected}`")));
            }
            None => problems.push(Problem::new(
                key,
                format!("is required: expected `{expected}`"),
            )),
        }
    }
    let keys = value
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.keys());
    for key in keys.filter(|key| !["apiVersion", "kind", "clouds"].contains(&key.as_str())) {
        problems.push(Problem::new(
            key.as_str(),
            "is not a known key: expected `apiVersion`, `kind` and `clouds`",
        ));
    }
}

fn read_cloud(entry: &Value, known: &[&str]) -> Result<CloudEntry, Problems> {
    let mut reader = ConfigReader::new(entry);
    let name = reader.get(&NAME);
    let provider = reader.get(&PROVIDER);
    let selector = reader.get(&SELECTOR);
    let matchers = reader.get(&MATCH).unwrap_or_default();
    let default = reader.get(&DEFAULT);
    let classes = reader.get(&CLASS).unwrap_or_default();
    let clouds = reader.get(&TARGET_CLOUDS).unwrap_or_default();
    let by = reader.get(&TARGET_BY);
    let config = reader.get(&CONFIG);
    if let Some(name) = name
        .as_deref()
        .filter(|name| name.is_empty() || !is_label_value(name))
    {
        let expected = "letters, digits, `-`, `_` and `.`, at most 63 of them";
        reader.note(Problem::unexpected("name", name, expected));
    }
    if let Some(provider) = provider.as_deref().filter(|name| !known.contains(name)) {
        reader.note(unknown_provider(provider, known));
    }
    reader.finish(|| {
        Some(CloudEntry {
            name: name?,
            provider: provider?,
            nodes: NodeScope { selector, matchers },
            load_balancers: BalancerScope {
                default: default.unwrap_or(false),
                classes: classes.into_iter().collect(),
                targets: TargetScope { clouds, by: by?.0 },
            },
            config: config.map_or(ConfigSource::None, |settings| ConfigSource::Own(settings.0)),
        })
    })
}

fn unknown_provider(name: &str, known: &[&str]) -> Problem {
    let expected = match nearest(name, known.iter().copied()) {
        Some(near) => format!("a provider that is compiled in: did you mean `{near}`?"),
        None => format!("one of {}", known.join(", ")),
    };
    Problem::unexpected("provider", name, expected)
}

/// Problems that concern several clouds.
fn check_together(clouds: &mut [CloudEntry], problems: &mut Problems) {
    let names: Vec<String> = clouds.iter().map(|cloud| cloud.name.clone()).collect();
    refuse_doubles(problems, "name", names.iter().map(Some));
    let classes = clouds.iter().map(|cloud| &cloud.load_balancers.classes);
    refuse_doubles(problems, "loadBalancers.class", classes);
    for (index, cloud) in clouds.iter().enumerate() {
        for target in &cloud.load_balancers.targets.clouds {
            if !names.contains(target) {
                problems.push(Problem::unexpected(
                    format!("clouds[{index}].loadBalancers.targets.clouds"),
                    target,
                    format!("one of {}", names.join(", ")),
                ));
            }
        }
    }
    match clouds {
        [only] => only.load_balancers.default |= only.load_balancers.classes.is_empty(),
        several => {
            let defaults = several
                .iter()
                .filter(|cloud| cloud.load_balancers.default)
                .count();
            if defaults > 1 {
                let message = "is true for more than one cloud: Services without a class can only \
                               have one";
                problems.push(Problem::new("loadBalancers.default", message));
            }
        }
    }
}

fn refuse_doubles<'a>(
    problems: &mut Problems,
    key: &str,
    values: impl Iterator<Item = impl IntoIterator<Item = &'a String>>,
) {
    let mut seen = BTreeSet::new();
    for (index, value) in values.enumerate() {
        for value in value.into_iter().filter(|value| !seen.insert(*value)) {
            let place = format!("clouds[{index}].{key}");
            problems.push(Problem::unexpected(
                place,
                value,
                "a value that no other cloud has",
            ));
        }
    }
}

#[cfg(test)]
mod tests;
