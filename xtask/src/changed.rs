//! What a change can reach: the crates whose files changed, and every crate that builds or tests with them.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};

use crate::edges::matches;
use crate::metadata::{Metadata, Package};
use crate::workspace::{Workspace, output_of};

/// Files that every build depends on.
const READ_BY_ALL: &[&str] = &[".cargo/", "Cargo.lock", "Cargo.toml", "rust-toolchain.toml"];

/// Files outside of crates that the tests or the code of a crate read.
const READ_BY: &[(&str, &str)] = &[
    ("Dockerfile", "crates/cloudkeel"),
    ("README.md", "crates/cloudkeel"),
    ("bench/go-peer/", "crates/testkit"),
    ("deploy/", "crates/cloudkeel"),
    ("deploy/", "crates/manager"),
    ("docs/conformance.md", "examples/provider"),
    ("docs/conformance.md", "providers/*"),
    ("docs/install.md", "crates/cloudkeel"),
    ("docs/leader-migration.md", "crates/cloudkeel"),
    ("docs/migrate.md", "crates/cloudkeel"),
    ("docs/plan.md", "crates/cloudkeel"),
    ("docs/reference/", "crates/cloudkeel"),
    ("docs/several-clouds.md", "crates/cloudkeel"),
    ("docs/upgrade.md", "crates/cloudkeel"),
    ("docs/write-a-provider.md", "examples/provider"),
    ("xtask/stacks/aws/", "providers/aws"),
    ("xtask/stacks/vsphere/", "providers/vsphere"),
];

/// Files outside of a crate that only its tests read: crates that depend on it do not.
const READ_BY_TESTS: &[(&str, &str)] = &[
    ("crates/cloudkeel/src/providers.rs", "crates/fuzz"),
    ("crates/cloudkeel/tests/manager/", "crates/embedded"),
    ("crates/controllers/tests/ipam.rs", "crates/embedded"),
    (
        "crates/controllers/tests/service_patches.rs",
        "crates/embedded",
    ),
    ("crates/manager/tests/election/", "crates/embedded"),
    ("deploy/policies/", "crates/testkit"),
    ("docs/conformance.md", "crates/testkit"),
    ("docs/embedded.md", "crates/embedded"),
    ("docs/reference/", "crates/testkit"),
];

/// Branches that a change is compared with unless another one is named.
const BASES: &[&str] = &["origin/main", "main"];

/// Which changes make a tier run with `--changed`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach {
    /// All: it is quick.
    Everything,
    /// Those that reach a crate.
    AnyCrate,
    /// Those that reach the crate at this place.
    Crate(&'static str),
    /// Those of these files.
    Files(&'static [&'static str]),
}

/// A change: the files, and the crates that it can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    files: Vec<String>,
    places: BTreeSet<String>,
}

impl Changed {
    /// What differs from the point where this branch left `base`, committed or not.
    pub(crate) fn since(workspace: &Workspace, base: Option<&str>) -> Result<Self> {
        let fork = fork_point(workspace, base)?;
        let mut files = git_lines(workspace, &["diff", "--name-only", "--no-renames", &fork])?;
        let untracked = ["ls-files", "--others", "--exclude-standard"];
        files.extend(git_lines(workspace, &untracked)?);
        Ok(Self::of_files(files, &Metadata::read(workspace)?))
    }

    fn of_files(files: Vec<String>, metadata: &Metadata) -> Self {
        let is_changed = |member: &&Package| {
            let place = metadata.place(member);
            files.iter().any(|file| is_read(file, place))
        };
        let mut places: BTreeSet<String> = metadata
            .members()
            .filter(is_changed)
            .map(|member| metadata.place(member).to_owned())
            .collect();
        // Until no crate depends on a reached one without being reached itself.
        loop {
            let dependents: Vec<String> = metadata
                .members()
                .filter(|member| !places.contains(metadata.place(member)))
                .filter(|member| uses_one_of(member, &places, metadata))
                .map(|member| metadata.place(member).to_owned())
                .collect();
            if dependents.is_empty() {
                break;
            }
            places.extend(dependents);
        }
        let is_tested_with = |member: &&Package| {
            let place = metadata.place(member);
            files
                .iter()
                .any(|file| is_named(file, place, READ_BY_TESTS))
        };
        let tested = metadata.members().filter(is_tested_with);
        places.extend(tested.map(|member| metadata.place(member).to_owned()));
        Self { files, places }
    }

    /// Whether the change can reach the crate at a place.
    pub(crate) fn reaches_place(&self, place: &str) -> bool {
        self.places.contains(place)
    }

    pub(crate) fn reaches(&self, reach: Reach) -> bool {
        match reach {
            Reach::Everything => true,
            Reach::AnyCrate => !self.places.is_empty(),
            Reach::Crate(place) => self.reaches_place(place),
            Reach::Files(files) => files
                .iter()
                .any(|file| self.files.iter().any(|changed| changed == file)),
        }
    }

    /// For people: `3 files changed, which can reach crates/api, crates/http`.
    pub(crate) fn summary(&self) -> String {
        let places: Vec<&str> = self.places.iter().map(String::as_str).collect();
        let reached = if places.is_empty() {
            "no crate".to_owned()
        } else {
            places.join(", ")
        };
        let plural = if self.files.len() == 1 { "" } else { "s" };
        format!(
            "{} file{plural} changed, which can reach {reached}",
            self.files.len()
        )
    }
}

/// Whether a file belongs to the crate at a place, or is read by it.
fn is_read(file: &str, place: &str) -> bool {
    let is_in = |folder: &str| {
        file.strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    is_in(place)
        || READ_BY_ALL.iter().any(|pattern| names(pattern, file))
        || is_named(file, place, READ_BY)
}

/// Whether a table says that the crate at a place reads a file.
fn is_named(file: &str, place: &str, table: &[(&str, &str)]) -> bool {
    let mut rows = table.iter();
    rows.any(|(pattern, reader)| names(pattern, file) && matches(reader, place))
}

/// Whether a pattern is a file, or a folder that it is in.
fn names(pattern: &str, file: &str) -> bool {
    file == pattern || (pattern.ends_with('/') && file.starts_with(pattern))
}

fn uses_one_of(member: &Package, places: &BTreeSet<String>, metadata: &Metadata) -> bool {
    member.dependencies.iter().any(|dependency| {
        let path = dependency.path.as_ref();
        let relative = path.and_then(|path| path.strip_prefix(&metadata.workspace_root).ok());
        relative
            .and_then(|path| path.to_str())
            .is_some_and(|path| places.contains(path))
    })
}

fn fork_point(workspace: &Workspace, base: Option<&str>) -> Result<String> {
    let candidates = base.map_or_else(|| BASES.to_vec(), |base| vec![base]);
    for candidate in &candidates {
        let known = ["rev-parse", "--verify", "--quiet", candidate];
        if git_lines(workspace, &known).is_ok() {
            let merge_base = git_lines(workspace, &["merge-base", candidate, "HEAD"])?;
            return merge_base
                .into_iter()
                .next()
                .with_context(|| format!("this branch has nothing in common with {candidate}"));
        }
    }
    bail!(
        "git does not know {}: name the commit to compare with, as in `--changed HEAD~1`",
        candidates.join(" or ")
    )
}

fn git_lines(workspace: &Workspace, arguments: &[&str]) -> Result<Vec<String>> {
    let mut git = workspace.command("git");
    git.args(arguments);
    let output = output_of(git)?;
    Ok(String::from_utf8_lossy(&output)
        .lines()
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::metadata::{Dependency, Kind, Resolve, package};

    /// `api` ← `http` ← `provider` ← (tests of) `cloudkeel`; `testkit` ← tests of `cloudkeel` and `page`.
    fn metadata() -> Metadata {
        let uses = |place: &str, kind| Dependency {
            kind,
            path: Some(format!("/repo/{place}").into()),
        };
        let mut packages = vec![
            package("api", "crates/api"),
            package("http", "crates/http"),
            package("provider", "providers/local"),
            package("cloudkeel", "crates/cloudkeel"),
            package("page", "crates/page"),
            package("testkit", "crates/testkit"),
        ];
        packages[1].dependencies = vec![uses("crates/api", None)];
        packages[2].dependencies = vec![uses("crates/http", None)];
        packages[3].dependencies = vec![
            uses("providers/local", Some(Kind::Dev)),
            uses("crates/testkit", Some(Kind::Dev)),
        ];
        packages[4].dependencies = vec![uses("crates/testkit", Some(Kind::Dev))];
        Metadata {
            workspace_members: packages.iter().map(|package| package.id.clone()).collect(),
            packages,
            workspace_root: "/repo".into(),
            target_directory: "/repo/target".into(),
            resolve: Resolve { nodes: Vec::new() },
        }
    }

    fn reached(files: &[&str]) -> Vec<String> {
        let files = files.iter().map(|&file| file.to_owned()).collect();
        Changed::of_files(files, &metadata())
            .places
            .into_iter()
            .collect()
    }

    #[test]
    fn a_change_reaches_every_crate_that_builds_or_tests_with_what_changed() {
        let all = [
            "crates/api",
            "crates/cloudkeel",
            "crates/http",
            "crates/page",
            "crates/testkit",
            "providers/local",
        ];
        for (case, files, expected) in [
            ("nothing", vec![], vec![]),
            (
                "the contract",
                vec!["crates/api/src/lib.rs"],
                vec![
                    "crates/api",
                    "crates/cloudkeel",
                    "crates/http",
                    "providers/local",
                ],
            ),
            (
                "a leaf",
                vec!["crates/page/src/lib.rs"],
                vec!["crates/page"],
            ),
            (
                "a test of a leaf",
                vec!["crates/cloudkeel/tests/a.rs"],
                vec!["crates/cloudkeel"],
            ),
            (
                "a name that only begins like a crate's",
                vec!["crates/api-notes.md"],
                vec![],
            ),
            ("a page that nothing reads", vec!["docs/testing.md"], vec![]),
            (
                "a page that tests read",
                vec!["README.md"],
                vec!["crates/cloudkeel"],
            ),
            (
                "the table of providers",
                vec!["docs/conformance.md"],
                vec!["crates/cloudkeel", "crates/testkit", "providers/local"],
            ),
            ("the lock file", vec!["Cargo.lock"], all.to_vec()),
            (
                "settings of cargo",
                vec![".cargo/config.toml"],
                all.to_vec(),
            ),
        ] {
            assert_eq!(reached(&files), expected, "{case}");
        }
    }

    #[test]
    fn tiers_are_reached_by_crates_or_by_files() {
        let files = vec!["Cargo.lock".to_owned(), "docs/a.md".to_owned()];
        let all = Changed::of_files(files, &metadata());
        let page = Changed::of_files(vec!["docs/a.md".to_owned()], &metadata());
        for (case, reach, by_all, by_page) in [
            ("quick", Reach::Everything, true, true),
            ("any crate", Reach::AnyCrate, true, false),
            ("one crate", Reach::Crate("crates/page"), true, false),
            (
                "files",
                Reach::Files(&["Cargo.lock", "deny.toml"]),
                true,
                false,
            ),
        ] {
            assert_eq!(all.reaches(reach), by_all, "{case}");
            assert_eq!(page.reaches(reach), by_page, "{case}");
        }
        assert_eq!(page.summary(), "1 file changed, which can reach no crate");
    }

    /// The pages that a source file reads, as `../../docs/a.md`.
    fn pages_in(source: &str) -> impl Iterator<Item = &str> {
        let parts = source.split("../../").skip(1);
        let pages = parts.filter_map(|part| part.split('"').next());
        pages.filter(|page| page.starts_with("docs/"))
    }

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|it| it == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_page_that_a_crate_reads_reaches_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut read = 0;
        for group in ["crates", "emulators", "examples", "providers"] {
            let mut files = Vec::new();
            sources(&root.join(group), &mut files);
            for file in files {
                let relative = file.strip_prefix(&root).unwrap().to_str().unwrap();
                let place: Vec<_> = relative.split('/').take(2).collect();
                let place = place.join("/");
                for page in pages_in(&fs::read_to_string(&file).unwrap()) {
                    // A folder without its slash is a folder all the same.
                    let folder = format!("{page}/");
                    let is_folder = Path::new(page).extension().is_none();
                    let page = if is_folder { &folder } else { page };
                    let is_known = is_read(page, &place) || is_named(page, &place, READ_BY_TESTS);
                    assert!(is_known, "{relative} reads {page}: add it to READ_BY");
                    read += 1;
                }
            }
        }
        assert!(read > 2, "{read} pages are read");
    }
}
