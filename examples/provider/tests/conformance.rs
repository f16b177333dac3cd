//! The example through the conformance kit, and the guide that shows it.

#![expect(clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cloudkeel_api::{ConfigSource, ProviderFactory as _, ProviderInput};
use cloudkeel_provider_example::ExampleFactory;
use cloudkeel_testkit::conformance::{self, SimulatedSetup};
use cloudkeel_testkit::simulated_cloud::{InProcess, SimulatedCloud};
use futures::FutureExt as _;
use serde_json::json;

/// What the example leaves as an exercise.
const LEFT_OUT: &[(&str, &str)] = &[
    ("load-balancers/algorithm", "left as an exercise"),
    ("load-balancers/name", "left as an exercise"),
    ("load-balancers/size", "left as an exercise"),
    ("load-balancers/hostname", "left as an exercise"),
    ("load-balancers/check-by-http", "left as an exercise"),
    ("load-balancers/check-per-port", "left as an exercise"),
];

fn setup() -> SimulatedSetup {
    let setup = SimulatedSetup::new("example", |cloud, context| {
        async move {
            let factory = ExampleFactory(Some(Arc::new(cloud.transport())));
            let config = json!({"endpoint": InProcess::URL, "token": SimulatedCloud::TOKEN});
            let input = ProviderInput {
                config: ConfigSource::Own(config),
                ..ProviderInput::default()
            };
            let built = factory.build(input, context).await;
            built.map_err(|error| error.to_string())
        }
        .boxed()
    });
    setup
        .with_ids(|machine| format!("example://{machine}"))
        .with_gaps(LEFT_OUT)
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> String {
    let text = fs::read_to_string(path);
    text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files of a folder of sources.
fn sources(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(here(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.map(|path| read(&path)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_example_conforms_and_the_page_says_so() {
    let report = conformance::run(&setup()).await;
    assert!(report.is_clean(), "{report}");
    if let Err(stale) = conformance::compare_with_page(&report, &here("../../docs/conformance.md"))
    {
        panic!("{stale}");
    }
}

#[test]
fn the_example_has_less_than_300_lines() {
    let sources = sources("src");
    let lines: usize = sources.iter().map(|text| text.lines().count()).sum();
    assert!(lines < 300, "it has {lines} lines");
}

/// The snippets of the guide in a language.
fn snippets<'a>(guide: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let fences = guide.split(fence.as_str()).skip(1);
    let snippet = |text: &'a str| text.split_once("```").expect("a fence that ends").0;
    fences.map(snippet).collect()
}

#[test]
fn every_snippet_of_the_guide_stands_in_the_example() {
    let guide = read(&here("../../docs/write-a-provider.md"));
    let mut snippets = snippets(&guide, "rust");
    assert!(snippets.len() >= 8, "{} snippets", snippets.len());
    snippets.extend(self::snippets(&guide, "toml"));
    let mut sources = sources("src");
    sources.extend(self::sources("tests"));
    sources.extend(self::sources("../sdk/src"));
    sources.push(read(&here("Cargo.toml")));
    for snippet in snippets {
        let stands = sources.iter().any(|source| source.contains(snippet));
        assert!(stands, "this is not in the example:\n{snippet}");
    }
}
