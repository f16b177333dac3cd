//! The reference pages, printed from the tables that the program itself uses.

mod findings;
mod logs;
mod schema;

use std::fmt::Write as _;

use cloudkeel_api::{Descriptor, KeyPlace, Registry, names, reference_table};
use jiff::Timestamp;

use crate::config;
use crate::flags::{Effect, FlagRow, FlagTable};
use crate::metrics::{BuildInfo, Metrics, metrics_table};
use crate::options::FeatureGates;

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its file name without the extension.
    pub name: String,
    /// The extension of its file: `md`, or `json` for a schema.
    pub extension: &'static str,
    /// Its heading.
    pub title: String,
    /// All of it.
    pub text: String,
}

impl Page {
    fn new(name: impl Into<String>, title: impl Into<String>, body: &str) -> Self {
        let title = title.into();
        let text = format!(
            "<!-- Printed by `cloudkeel docs`. Change the code, not this page. -->\n\n# {title}\n\n{body}"
        );
        Self {
            name: name.into(),
            extension: "md",
            title,
            text,
        }
    }

    /// The annotations of a cloud's Services as a JSON schema.
    fn schema(descriptor: &Descriptor) -> Option<Self> {
        let schema = schema::of_cloud(descriptor)?;
        Some(Self {
            name: format!("schema-{}", descriptor.name),
            extension: "json",
            title: format!("JSON schema of the annotations of {}", descriptor.name),
            text: format!("{schema:#}\n"),
        })
    }
}

/// All pages, in the order in which they are listed.
pub fn pages(registry: &Registry) -> Vec<Page> {
    let descriptors = registry.descriptors();
    let mut pages = vec![
        flags_page(&descriptors),
        config_page(),
        annotations_page(),
        metrics_page(),
        logs::page(),
        findings::page(),
    ];
    pages.extend(descriptors.iter().map(|descriptor| {
        let more = registry.get(descriptor.name).ok();
        provider_page(descriptor, more.and_then(|factory| factory.reference()))
    }));
    pages.extend(descriptors.iter().filter_map(Page::schema));
    pages
}

fn flags_page(descriptors: &[Descriptor]) -> Page {
    let table = FlagTable::new(descriptors);
    let mut body = String::from(
        "Flags are read as Go reads them: `--x=1`, `--x 1`, `--switch`, `--switch=false`; \
         underscores stand for dashes.\n",
    );
    let mut group = None;
    for row in table.rows() {
        if group != Some(row.group) {
            group = Some(row.group);
            let _ = write!(
                body,
                "\n## {}\n\n| flag | type | default | meaning |\n|---|---|---|---|\n",
                row.group.heading()
            );
        }
        body.push_str(&flag_line(row));
    }
    body.push_str("\n## Feature gates\n\n| gate | default | meaning |\n|---|---|---|\n");
    for gate in FeatureGates::known() {
        let _ = writeln!(
            body,
            "| `{}` | {} | {} |",
            gate.name, gate.default, gate.help
        );
    }
    body.push_str(
        "\nGates of the API server library are accepted, as upstream does, and have no effect. Any other gate \
         is reported in the log and has none either.\n",
    );
    Page::new("flags", "Flags", &body)
}

fn flag_line(row: &FlagRow) -> String {
    let default = match row.doc.default {
        Some(default) if !default.is_empty() => format!("`{default}`"),
        _ => "–".to_owned(),
    };
    let effect = match row.effect {
        Effect::Works => String::new(),
        Effect::None(why) => format!(" **No effect**: {why}."),
        Effect::Deprecated(why) => format!(" **Deprecated**: {why}."),
    };
    let help = row.doc.help.replace('|', "\\|");
    format!(
        "| `--{}` | {} | {default} | {help}{effect} |\n",
        row.doc.name, row.doc.value_type
    )
}

fn config_page() -> Page {
    let body = format!(
        "One file with one list of clouds, given with `--cloud-config`. Unknown keys are errors, and \
         all errors are reported at once. The keys under `config` are on the page of the provider.\n\n\
         ```yaml\napiVersion: {}\nkind: {}\nclouds:\n  - name: home\n    provider: local\n    \
         config: {{endpoint: \"http://127.0.0.1:8080\"}}\n```\n\n## Keys of a cloud\n\n{}",
        config::API_VERSION,
        config::KIND,
        reference_table(&config::key_docs())
    );
    Page::new("config", "Configuration file", &body)
}

fn annotations_page() -> Page {
    let body = format!(
        "cloudkeel's own labels and annotations, the same for every cloud. A cloud's own annotation takes \
         precedence; an annotation that a cloud does not support is reported in an Event.\n\n\
         | Node label | meaning |\n|---|---|\n\
         | `{}: \"true\"` | the Node is never changed or deleted |\n\
         | `{}: NAME` | the Node belongs to that cloud of the configuration |\n\n{}",
        names::UNMANAGED_LABEL,
        names::CLOUD_LABEL,
        reference_table(&names::annotation_docs())
    );
    Page::new("annotations", "Labels and annotations", &body)
}

fn metrics_page() -> Page {
    let metrics = Metrics::new(&BuildInfo::default(), Timestamp::UNIX_EPOCH);
    let body = format!(
        "Served at `/metrics` on the secure port. Upstream metrics keep their names, types and buckets; \
         cloudkeel's own begin with `cloudkeel_`.\n\n{}",
        metrics_table(metrics.docs())
    );
    Page::new("metrics", "Metrics", &body)
}

fn provider_page(descriptor: &Descriptor, more: Option<String>) -> Page {
    let capabilities: Vec<_> = descriptor.capabilities.iter().map(|c| c.as_str()).collect();
    let mut body = format!(
        "{}\n\nIt supports: {}.\n",
        descriptor.summary,
        capabilities.join(", ")
    );
    if !descriptor.replaces.is_empty() {
        let _ = write!(
            body,
            "\nIt replaces `{}`: started under that name, it needs no `--cloud-provider`.\n",
            descriptor.replaces.join("`, `")
        );
    }
    for (place, heading) in [
        (KeyPlace::Config, "Configuration"),
        (KeyPlace::Env, "Environment"),
        (KeyPlace::File, "File of --cloud-config"),
        (KeyPlace::Flag, "Flags"),
        (KeyPlace::Annotation, "Annotations"),
    ] {
        let keys: Vec<_> = descriptor
            .keys
            .iter()
            .filter(|k| k.place == place)
            .cloned()
            .collect();
        if !keys.is_empty() {
            let _ = write!(body, "\n## {heading}\n\n{}", reference_table(&keys));
        }
    }
    if let Some(more) = more {
        let _ = write!(body, "\n{more}");
    }
    let title = format!("Provider {}", descriptor.name);
    Page::new(format!("provider-{}", descriptor.name), title, &body)
}
