//! The helm commands of the pages.

use serde_json::json;

use crate::helm::Helm;

const PAGES: [&str; 3] = ["install.md", "metrics.md", "upgrade.md"];

/// The commands of a page that name our chart, each in words. A comment ends a line.
fn commands(page: &str) -> Vec<Vec<String>> {
    let path = crate::harness::package().join("../../docs").join(page);
    let text = std::fs::read_to_string(path).expect("the page");
    let text = text.replace("\\\n", " ");
    text.lines()
        .filter(|line| line.starts_with("helm ") && line.contains("deploy/chart/cloudkeel"))
        .map(|line| line.split(" > ").next().unwrap_or(line))
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

/// `--reuse-values` and what a cluster is needed for aside, they render: every value exists, and fits the others.
#[tokio::test]
async fn every_helm_command_of_the_pages_renders() {
    let helm = Helm::new().await;
    let mut count = 0;
    for page in PAGES {
        for command in commands(page) {
            let [_, verb, release, chart, flags @ ..] = command.as_slice() else {
                panic!("{page}: {command:?}");
            };
            assert!(
                ["install", "upgrade", "template"].contains(&&**verb),
                "{page}: {verb}"
            );
            assert_eq!(
                (&**release, &**chart),
                ("cloudkeel", "deploy/chart/cloudkeel"),
                "{page}"
            );
            let flags: Vec<_> = flags.iter().map(String::as_str).collect();
            let flags: Vec<_> = flags
                .into_iter()
                .filter(|flag| *flag != "--reuse-values")
                .collect();
            let rendered = helm.template(&flags, &json!({}));
            assert!(rendered.success, "{page}: {command:?}: {rendered:#?}");
            assert!(rendered.stdout.contains("kind: "), "{page}: {command:?}");
            count += 1;
        }
    }
    assert!(count >= 4, "only {count} were found");
}
