//! Lines of code per crate, and the limits that keep a cloud small.
//!
//! A line counts if it has code on it: no blanks, no comments, no tests. Files and folders named `tests`, and
//! items behind `#[cfg(test)]` with the files that they name, are tests.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::rules::is_test;
use super::rust_files;
use crate::count::thousands;
use crate::edges::matches;
use crate::metadata::Metadata;
use crate::workspace::Workspace;

/// What a place may have.
struct Limit {
    kind: &'static str,
    /// A folder, `folder/*` for each folder in it.
    place: &'static str,
    most: usize,
}

/// The first row that matches a place counts. Where the bar is not met yet, the limit holds what there is and
/// a comment names the bar.
const LIMITS: &[Limit] = &[
    Limit {
        kind: "provider",
        place: "providers/aws",
        // Four APIs, and two kinds of load balancers that share little; targets by address, and quotas. The bar is 4,000.
        most: 6_626,
    },
    Limit {
        kind: "provider",
        place: "providers/hetzner",
        // Two APIs: the Cloud and Robot.
        most: 4_200,
    },
    Limit {
        kind: "provider",
        place: "providers/local",
        // It has every capability, the health of targets among them.
        most: 2_600,
    },
    Limit {
        kind: "provider",
        place: "providers/openstack",
        // Six APIs: Keystone, Nova, Neutron, Octavia, Cinder and Barbican. The bar is 3,500.
        most: 5_669,
    },
    Limit {
        kind: "provider",
        place: "providers/vsphere",
        // Two APIs, SOAP and REST, and settings in three forms. The bar is 2,000.
        most: 2_400,
    },
    Limit {
        kind: "provider",
        place: "providers/*",
        most: 2_000,
    },
    Limit {
        kind: "provider",
        place: "examples/provider",
        most: 248,
    },
    Limit {
        kind: "emulator",
        place: "emulators/hetzner",
        // Two APIs: the Cloud and Robot.
        most: 3_060,
    },
    Limit {
        kind: "emulator",
        place: "emulators/*",
        most: 1_500,
    },
];

/// What a kit adapter (`tests/conformance*` of a provider) may have.
const ADAPTER_LIMIT: usize = 150;
/// Adapters with a limit of their own.
const ADAPTER_LIMITS: &[(&str, usize)] = &[
    // Two adapters, of classic and of network load balancers.
    ("providers/aws", 273),
    // Two adapters, of the Cloud and of Robot.
    ("providers/hetzner", 262),
    // A load balancer is put together from five kinds of resources. The bar is 320.
    ("providers/openstack", 378),
    // With the way to another vCenter, and the refusals of SOAP.
    ("providers/vsphere", 230),
];

/// The lines of one crate or adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    kind: &'static str,
    place: String,
    lines: usize,
    most: Option<usize>,
}

pub(crate) struct Lines(Vec<Row>);

/// Counts the lines of every crate, and of the kit adapter of every provider.
pub(crate) fn count(workspace: &Workspace) -> Result<Lines> {
    let metadata = Metadata::read(workspace)?;
    let mut sources = BTreeMap::new();
    for path in rust_files(workspace)? {
        let file = workspace.root().join(&path);
        let bytes = fs::read(file).with_context(|| format!("cannot read {path}"))?;
        sources.insert(path, String::from_utf8_lossy(&bytes).into_owned());
    }
    let places = metadata.members().map(|member| metadata.place(member));
    Ok(Lines(rows(&places.collect::<Vec<_>>(), &sources)))
}

fn rows(places: &[&str], sources: &BTreeMap<String, String>) -> Vec<Row> {
    // The file of a test module, and the folder of the modules in it.
    let tests: BTreeSet<(String, String)> = sources
        .iter()
        .flat_map(|(path, source)| source::test_files(path, source))
        .map(|file| (file.clone(), format!("{}/", file.trim_end_matches(".rs"))))
        .collect();
    let is_code = |path: &str| {
        let is_of = |(file, folder): &(String, String)| path == file || path.starts_with(folder);
        !is_test(path) && !tests.iter().any(is_of)
    };
    let mut rows = Vec::new();
    for place in places {
        let code = format!("{place}/src/");
        let files = sources
            .iter()
            .filter(|(path, _)| path.starts_with(&code) && is_code(path));
        let limit = LIMITS.iter().find(|limit| matches(limit.place, place));
        rows.push(Row {
            kind: limit.map_or("crate", |limit| limit.kind),
            place: (*place).to_owned(),
            lines: files.map(|(_, source)| source::lines_of_code(source)).sum(),
            most: limit.map(|limit| limit.most),
        });
        let adapter = format!("{place}/tests/conformance");
        let files = sources
            .iter()
            .filter(|(path, _)| path.starts_with(&adapter));
        let lines = files
            .map(|(_, source)| source::lines_with_tests(source))
            .sum();
        if lines > 0 && limit.is_some_and(|limit| limit.kind == "provider") {
            let own = ADAPTER_LIMITS
                .iter()
                .find(|(provider, _)| provider == place);
            rows.push(Row {
                kind: "adapter",
                place: adapter,
                lines,
                most: Some(own.map_or(ADAPTER_LIMIT, |(_, most)| *most)),
            });
        }
    }
    rows.sort_by(|left, right| (left.kind, &left.place).cmp(&(right.kind, &right.place)));
    rows
}

impl Lines {
    pub(crate) fn table(&self) -> String {
        let width = self.0.iter().map(|row| row.place.len()).max();
        let width = width.unwrap_or_default();
        let mut text = format!("{:8}  {:width$}    lines  at most\n", "kind", "place");
        for row in &self.0 {
            let most = row
                .most
                .map_or_else(String::new, |most| thousands(most as u64));
            let lines = thousands(row.lines as u64);
            let (kind, place) = (row.kind, &row.place);
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{kind:8}  {place:width$}  {lines:>7}  {most:>7}");
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let row = |row: &Row| json!({"kind": row.kind, "place": row.place, "lines": row.lines, "most": row.most});
        self.0.iter().map(row).collect()
    }

    /// Whatever is above its limit.
    pub(crate) fn findings(&self) -> Vec<String> {
        let finding = |row: &Row| {
            let most = row.most.filter(|most| row.lines > *most)?;
            let (kind, place, lines) = (row.kind, &row.place, row.lines);
            Some(format!(
                "{place}: the {kind} has {lines} lines of code, at most {most} are allowed"
            ))
        };
        self.0.iter().filter_map(finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(files: &[(&str, &str)]) -> Vec<(&'static str, String, usize, Option<usize>)> {
        let sources = files
            .iter()
            .map(|(path, source)| ((*path).to_owned(), (*source).to_owned()))
            .collect();
        rows(&["crates/api", "providers/new"], &sources)
            .into_iter()
            .map(|row| (row.kind, row.place, row.lines, row.most))
            .collect()
    }

    #[test]
    fn code_counts_by_crate_and_tests_do_not() {
        let rows = rows_of(&[
            (
                "crates/api/src/lib.rs",
                "//! Doc\nmod node;\n#[cfg(test)]\nmod fixtures;\n\nfn a() {}\n",
            ),
            ("crates/api/src/fixtures.rs", "fn a() {}\nfn b() {}\n"),
            ("crates/api/src/fixtures/deep.rs", "fn a() {}\n"),
            ("crates/api/src/node/tests.rs", "fn a() {}\n"),
            ("crates/api/tests/all.rs", "fn a() {}\n"),
            ("providers/new/src/lib.rs", "fn a() {}\n"),
            (
                "providers/new/tests/conformance/main.rs",
                "// why\n#[test]\nfn a() {}\n",
            ),
            ("providers/new/tests/conformance.rs", "fn a() {}\n"),
            ("providers/new/tests/other.rs", "fn a() {}\n"),
        ]);
        assert_eq!(
            rows,
            [
                (
                    "adapter",
                    "providers/new/tests/conformance".to_owned(),
                    3,
                    Some(ADAPTER_LIMIT)
                ),
                ("crate", "crates/api".to_owned(), 2, None),
                ("provider", "providers/new".to_owned(), 1, Some(2_000)),
            ]
        );
    }

    #[test]
    fn what_is_above_its_limit_is_a_finding() {
        let row = |lines, most| Row {
            kind: "provider",
            place: "providers/new".to_owned(),
            lines,
            most,
        };
        let lines = Lines(vec![row(10, Some(10)), row(10, None), row(11, Some(10))]);
        assert_eq!(
            lines.findings(),
            ["providers/new: the provider has 11 lines of code, at most 10 are allowed"]
        );
        assert_eq!(
            lines.json()[0],
            json!({"kind": "provider", "place": "providers/new", "lines": 10, "most": 10})
        );
    }
}
