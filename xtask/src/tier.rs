//! The table of tiers: everything that is checked, cheapest first.
//!
//! To add one, write a function that runs it (in [`crate::suites`] or in a module of its own) and
//! a row here.

use anyhow::Result;

use crate::machine::{Machine, Requirement};
use crate::workspace::{Outcome, Workspace};
use crate::{edges, house, image, page, suites, tool};

/// A group of checks that run, fail and are reported together.
pub(crate) struct Tier {
    pub(crate) name: &'static str,
    /// What holds if it passes.
    pub(crate) what: &'static str,
    /// Whether `cargo xtask check` runs it too.
    pub(crate) in_check: bool,
    /// What it needs that xtask cannot set up. Without it, the tier is skipped.
    pub(crate) requires: &'static [Requirement],
    /// What a first run costs beyond a later one, so that nobody thinks it hangs.
    pub(crate) first_run: Option<&'static str>,
    pub(crate) run: fn(&Workspace) -> Result<Outcome>,
}

impl Tier {
    /// Why it cannot run on this machine; `None` when it can.
    pub(crate) fn missing(&self, machine: &Machine) -> Option<String> {
        let missing: Vec<String> = self
            .requires
            .iter()
            .filter_map(|requirement| requirement.missing(machine))
            .collect();
        (!missing.is_empty()).then(|| format!("needs {}", missing.join(", and ")))
    }
}

const CONTROL_PLANE: Requirement = Requirement::AnyOf(&[
    Requirement::Program("go"),
    Requirement::FolderWith {
        variable: "KUBEBUILDER_ASSETS",
        files: &["etcd", "kube-apiserver"],
    },
]);

/// Tiers that only run if `--tier` names them: they take many minutes.
pub(crate) const ON_REQUEST: &[&str] = &["image"];

pub(crate) const TIERS: &[Tier] = &[
    Tier {
        name: "fmt",
        what: "the code is formatted by rustfmt",
        in_check: true,
        requires: &[],
        first_run: None,
        run: suites::fmt,
    },
    Tier {
        name: "edges",
        what: "the crates depend on each other only as designed",
        in_check: true,
        requires: &[],
        first_run: None,
        run: edges::run,
    },
    Tier {
        name: "house",
        what: "files stay short, ignored tests say why, nothing is left to do",
        in_check: true,
        requires: &[Requirement::Program("git")],
        first_run: None,
        run: house::run,
    },
    Tier {
        name: "clippy",
        what: "no lint speaks up, in any target",
        in_check: true,
        requires: &[],
        first_run: Some("some minutes, to check every crate that is built upon"),
        run: suites::clippy,
    },
    Tier {
        name: "features",
        what: "every crate with features builds alone without them and with each one",
        in_check: true,
        requires: &[],
        first_run: None,
        run: suites::features,
    },
    Tier {
        name: "deny",
        what: "licences, banned crates and sources of the dependencies",
        in_check: false,
        requires: &[],
        first_run: None,
        run: tool::deny,
    },
    Tier {
        name: "unit",
        what: "unit tests",
        in_check: true,
        requires: &[],
        first_run: Some("some minutes, to build everything"),
        run: suites::unit,
    },
    Tier {
        name: "integration",
        what: "integration tests, some against a real etcd and kube-apiserver",
        in_check: false,
        requires: &[CONTROL_PLANE],
        first_run: Some(
            "about 6 minutes more where Go has to build etcd and kube-apiserver; a later run finds \
             them in the cache, and KUBEBUILDER_ASSETS can name a folder with both",
        ),
        run: suites::integration,
    },
    Tier {
        name: "simulation",
        what: "seeded runs of two managers with everything that goes wrong; planted bugs are found",
        in_check: false,
        requires: &[],
        first_run: Some("some minutes, for an optimised build of its own"),
        run: suites::simulation,
    },
    Tier {
        name: "fuzz",
        what: "no reader of others' bytes panics, hangs or says what is not so",
        in_check: false,
        requires: &[],
        first_run: None,
        run: suites::fuzz_a_little,
    },
    Tier {
        name: "doc",
        what: "the examples in the documentation run, and its links lead somewhere",
        in_check: true,
        requires: &[],
        first_run: None,
        run: suites::doc,
    },
    Tier {
        name: "page",
        what: "the live page does in a browser what its buttons say",
        in_check: false,
        // It installs the browser where it may, and else says what is missing.
        requires: &[],
        first_run: None,
        run: page::run,
    },
    Tier {
        name: "image",
        what: "the binary of the image is static and runs where nothing else is (only on request)",
        in_check: false,
        requires: &[
            Requirement::Program("cc"),
            Requirement::Program("ldd"),
            Requirement::Program("unshare"),
        ],
        first_run: Some("many minutes, for a release for another target"),
        run: image::run,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_can_stand_in_a_list() {
        let names: BTreeSet<&str> = TIERS.iter().map(|tier| tier.name).collect();
        assert_eq!(names.len(), TIERS.len());
        assert!(ON_REQUEST.iter().all(|name| names.contains(name)));
        for name in names {
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{name}"
            );
        }
    }

    #[test]
    fn a_tier_says_all_it_misses() {
        let tier = Tier {
            name: "far",
            what: "",
            in_check: false,
            requires: &[Requirement::Program("helm"), CONTROL_PLANE],
            first_run: None,
            run: |_| Ok(Outcome::passed()),
        };
        assert_eq!(
            tier.missing(&Machine::with(&[])).as_deref(),
            Some(
                "needs `helm` on PATH, and `go` on PATH, or KUBEBUILDER_ASSETS naming a folder \
                 with etcd and kube-apiserver"
            ),
        );
    }

    #[test]
    fn what_needs_go_or_servers_stays_out_of_check() {
        let in_check: Vec<&str> = TIERS
            .iter()
            .filter(|tier| tier.in_check)
            .map(|tier| tier.name)
            .collect();
        assert_eq!(
            in_check,
            ["fmt", "edges", "house", "clippy", "features", "unit", "doc"]
        );
    }
}
