//! Whether dependencies have the same features with and without tests. Where they have not, a build of programs
//! after a build of tests compiles them, and everything above them, a second time.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::build::EVERYTHING;
use crate::workspace::{Workspace, output_of};

/// Every package that has other features when tests are built.
pub(crate) fn findings(workspace: &Workspace) -> Result<Vec<String>> {
    let tree = |edges: &str| {
        let mut tree = workspace.cargo(&["tree", "--prefix", "none"]);
        tree.args(EVERYTHING);
        tree.args(["--edges", edges, "--format", "{p}|{f}"]);
        output_of(tree).map(|output| String::from_utf8_lossy(&output).into_owned())
    };
    Ok(differences(
        &tree("normal,build")?,
        &tree("normal,build,dev")?,
    ))
}

fn differences(programs: &str, tests: &str) -> Vec<String> {
    let (programs, tests) = (features(programs), features(tests));
    let differing = programs.iter().filter_map(|(package, without)| {
        let with = tests.get(package)?;
        let missing: Vec<&str> = with.difference(without).copied().collect();
        (!missing.is_empty()).then(|| {
            let missing = missing.join(", ");
            format!(
                "xtask/Cargo.toml: `{package}` is built twice, with and without {missing}: name it with these \
                 features in `one-resolution`"
            )
        })
    });
    differing.collect()
}

/// The features of each package: `serde v1.0.0|default,derive`. One that is built in several flavours anyway
/// (for build scripts, say) has all of them together.
fn features(tree: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut packages = BTreeMap::<&str, BTreeSet<&str>>::new();
    for line in tree.lines() {
        let line = line.trim_end_matches(" (*)");
        let Some((package, features)) = line.split_once('|') else {
            continue;
        };
        let features = features.split(',').filter(|feature| !feature.is_empty());
        packages.entry(package).or_default().extend(features);
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_more_features_for_tests_is_a_finding() {
        let programs = "serde v1.0.0|default,derive\nrand v1.0.0|\n\nrand v1.0.0| (*)\n";
        let tests = "serde v1.0.0|default,derive\nrand v1.0.0|std,small\nproptest v1.0.0|std\n";
        assert_eq!(
            differences(programs, tests),
            [
                "xtask/Cargo.toml: `rand v1.0.0` is built twice, with and without small, std: name it with these \
              features in `one-resolution`"
            ]
        );
        assert!(differences(tests, tests).is_empty());
    }
}
