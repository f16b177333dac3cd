//! The table of tiers: everything that is checked, the quick ones first.
//!
//! To add one, write a function that runs it (in [`crate::suites`] or in a module of its own) and
//! a row here.

use anyhow::Result;

use crate::changed::Reach;
use crate::machine::{Machine, Requirement};
use crate::outcome::Outcome;
use crate::stack::{self, openstack, vsphere};
use crate::workspace::Workspace;
use crate::{edges, house, image, minors, page, programs, suites, tool};

/// A group of checks that run, fail and are reported together.
pub(crate) struct Tier {
    pub(crate) name: &'static str,
    /// What holds if it passes.
    pub(crate) what: &'static str,
    /// Whether `cargo xtask check` runs it too.
    pub(crate) in_check: bool,
    /// What it needs that xtask cannot set up. Without it, the tier is skipped.
    pub(crate) requires: &'static [Requirement],
    /// Which changes make it run with `--changed`.
    pub(crate) reach: Reach,
    /// What a first run costs beyond a later one, so that it does not look as if it hangs.
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

/// Tiers that only run if `--tier` names them: they take many minutes.
pub(crate) const ON_REQUEST: &[&str] = &["go-ccm-aws", "image", "long", "minors", "openstack-kit"];

pub(crate) const TIERS: &[Tier] = &[
    Tier {
        name: "fmt",
        what: "the code is formatted by rustfmt",
        in_check: true,
        requires: &[],
        reach: Reach::Everything,
        first_run: None,
        run: suites::fmt,
    },
    Tier {
        name: "edges",
        what: "the crates depend on each other only as designed",
        in_check: true,
        requires: &[],
        reach: Reach::Everything,
        first_run: None,
        run: edges::run,
    },
    Tier {
        name: "house",
        what: "sizes, words, links, and a tier for every ignored test",
        in_check: true,
        requires: &[Requirement::Program("git")],
        reach: Reach::Everything,
        first_run: None,
        run: house::run,
    },
    Tier {
        name: "clippy",
        what: "clippy has no warnings, in any target",
        in_check: true,
        requires: &[],
        reach: Reach::AnyCrate,
        first_run: Some("some minutes, to check every dependency"),
        run: suites::clippy,
    },
    Tier {
        name: "features",
        what: "every crate with features builds alone without them and with each one",
        in_check: true,
        requires: &[],
        reach: Reach::AnyCrate,
        first_run: None,
        run: suites::features,
    },
    Tier {
        name: "deny",
        what: "licences, banned crates and sources of the dependencies",
        in_check: false,
        requires: &[],
        reach: Reach::Files(&["Cargo.lock", "Cargo.toml", "deny.toml"]),
        first_run: None,
        run: tool::deny,
    },
    Tier {
        name: "unit",
        what: "unit tests",
        in_check: true,
        requires: &[],
        reach: Reach::AnyCrate,
        first_run: Some("some minutes, to build everything"),
        run: programs::unit,
    },
    Tier {
        name: "integration",
        what: "integration tests, some against a real etcd and kube-apiserver",
        in_check: false,
        // Without a control plane, only the tests that use one are skipped.
        requires: &[],
        reach: Reach::AnyCrate,
        first_run: Some(
            "about 6 minutes more where Go has to build etcd and kube-apiserver; a later run finds \
             them in the cache, and KUBEBUILDER_ASSETS can name a folder with both",
        ),
        run: programs::integration,
    },
    Tier {
        name: "simulation",
        what: "seeded runs of two managers with faults hold every rule, and planted bugs are found",
        in_check: false,
        requires: &[],
        reach: Reach::Crate("crates/simulation"),
        first_run: Some("some minutes, for an optimised build of its own"),
        run: suites::simulation,
    },
    Tier {
        name: "fuzz",
        what: "parsers of foreign input neither panic nor hang, and hold their rules",
        in_check: false,
        requires: &[],
        reach: Reach::Crate("crates/fuzz"),
        first_run: None,
        run: suites::fuzz_a_little,
    },
    Tier {
        name: "aws",
        what: "the AWS provider conforms on moto, with signatures and IAM policies really checked",
        in_check: false,
        requires: stack::aws::REQUIRES,
        reach: Reach::Crate("providers/aws"),
        first_run: Some(stack::aws::STACK.cost),
        run: |workspace| stack::run(workspace, &stack::aws::STACK),
    },
    Tier {
        name: "doc",
        what: "examples in the documentation run, and rustdoc's links resolve",
        in_check: true,
        requires: &[],
        reach: Reach::AnyCrate,
        first_run: None,
        run: suites::doc,
    },
    Tier {
        name: "openstack",
        what: "the OpenStack provider on Keystone, Nova, Neutron and Octavia themselves",
        in_check: false,
        requires: openstack::REQUIRES,
        reach: Reach::Crate("providers/openstack"),
        first_run: Some(openstack::STACK.cost),
        run: |workspace| stack::run(workspace, &openstack::STACK),
    },
    Tier {
        name: "page",
        what: "the live page works in a browser",
        in_check: false,
        // It installs the browser where it may, and else says what is missing.
        requires: &[],
        reach: Reach::Crate("crates/cloudkeel"),
        first_run: None,
        run: page::run,
    },
    Tier {
        name: "vsphere",
        what: "the vSphere provider works with simulated vCenters",
        in_check: false,
        requires: &[Requirement::Program("go")],
        reach: Reach::AnyCrate,
        first_run: Some(vsphere::STACK.cost),
        run: |workspace| stack::run(workspace, &vsphere::STACK),
    },
    Tier {
        name: "go-ccm-aws",
        what: "the Go CCM on moto, taken over and back, and the records of it are true (only on request)",
        in_check: false,
        requires: stack::aws::GO_CCM_REQUIRES,
        reach: Reach::Crate("providers/aws"),
        first_run: Some(stack::aws::WITH_GO_CCM.cost),
        run: |workspace| stack::run(workspace, &stack::aws::WITH_GO_CCM),
    },
    Tier {
        name: "openstack-kit",
        what: "the OpenStack provider conforms on the services themselves, in many minutes (only on request)",
        in_check: false,
        requires: openstack::REQUIRES,
        reach: Reach::Crate("providers/openstack"),
        first_run: Some(openstack::STACK.cost),
        run: |workspace| stack::run_tier(workspace, &openstack::STACK, "openstack-kit"),
    },
    Tier {
        name: "image",
        what: "the image is whole, and its static binary needs no other file (only on request)",
        in_check: false,
        requires: &[
            Requirement::Program("cc"),
            Requirement::Program("git"),
            Requirement::Program("ldd"),
            Requirement::Program("skopeo"),
            Requirement::Program("tar"),
            Requirement::Program("unshare"),
        ],
        reach: Reach::Crate("crates/cloudkeel"),
        first_run: Some("many minutes, for a release for another target"),
        run: image::run,
    },
    Tier {
        name: "minors",
        what: "the suites of the control plane on the three newest minors of Kubernetes (only on request)",
        in_check: false,
        requires: minors::REQUIRES,
        reach: Reach::AnyCrate,
        first_run: Some(minors::COST),
        run: minors::run,
    },
    Tier {
        name: "long",
        what: "searches and measurements that take minutes (only on request)",
        in_check: false,
        requires: &[],
        reach: Reach::AnyCrate,
        first_run: None,
        run: |workspace| programs::ignored(workspace, "long"),
    },
];

/// The names of all tiers.
pub(crate) fn names() -> Vec<&'static str> {
    TIERS.iter().map(|tier| tier.name).collect()
}

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
            requires: &[
                Requirement::Program("helm"),
                crate::control_plane::REQUIREMENT,
            ],
            reach: Reach::Everything,
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
