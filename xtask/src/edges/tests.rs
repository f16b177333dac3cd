use std::path::{Path, PathBuf};

use super::*;
use crate::metadata::{DepKind, Dependency, Node, NodeDep, Resolve, package};

const NORMAL: Option<Kind> = None;
const DEV: Option<Kind> = Some(Kind::Dev);
const BUILD: Option<Kind> = Some(Kind::Build);

/// A member at each of these places, and edges between members (by place) or to crates from
/// elsewhere (by name).
fn workspace(places: &[&str], edges: &[(&str, Option<Kind>, &str)]) -> Metadata {
    let mut packages: Vec<Package> = places.iter().map(|place| package(place, place)).collect();
    let mut nodes: Vec<Node> = Vec::new();
    for &(from, kind, to) in edges {
        let is_ours = places.contains(&to);
        if let Some(user) = packages.iter_mut().find(|p| p.name == from && is_ours) {
            let path = is_ours.then(|| Path::new("/repo").join(to));
            user.dependencies.push(Dependency { kind, path });
        }
        if packages.iter().all(|p| p.name != to) {
            packages.push(package(to, &format!("elsewhere/{to}")));
        }
        let edge = NodeDep {
            pkg: to.into(),
            dep_kinds: vec![DepKind { kind }],
        };
        match nodes.iter_mut().find(|node| node.id == from) {
            Some(node) => node.deps.push(edge),
            None => nodes.push(Node {
                id: from.into(),
                deps: vec![edge],
            }),
        }
    }
    Metadata {
        packages,
        workspace_members: places.iter().map(|&place| place.to_owned()).collect(),
        target_directory: PathBuf::new(),
        workspace_root: "/repo".into(),
        resolve: Resolve { nodes },
    }
}

const ALL: &[&str] = &[
    "crates/api",
    "crates/http",
    "crates/controllers",
    "crates/manager",
    "crates/embedded",
    "crates/testkit",
    "crates/cloudkeel",
    "providers/aws",
    "providers/local",
    "xtask",
];

#[test]
fn the_designed_edges_are_allowed() {
    let designed = workspace(
        ALL,
        &[
            ("crates/http", NORMAL, "crates/api"),
            ("crates/controllers", NORMAL, "crates/api"),
            ("crates/controllers", DEV, "crates/testkit"),
            ("crates/controllers", DEV, "crates/embedded"),
            ("crates/manager", NORMAL, "crates/api"),
            ("crates/manager", NORMAL, "crates/http"),
            ("crates/manager", NORMAL, "crates/controllers"),
            ("crates/embedded", NORMAL, "crates/api"),
            ("crates/testkit", NORMAL, "crates/api"),
            ("crates/testkit", NORMAL, "crates/http"),
            ("crates/testkit", NORMAL, "crates/embedded"),
            ("providers/aws", NORMAL, "crates/api"),
            ("providers/aws", NORMAL, "crates/http"),
            ("providers/aws", DEV, "crates/testkit"),
            ("crates/cloudkeel", NORMAL, "crates/manager"),
            ("crates/cloudkeel", NORMAL, "crates/embedded"),
            ("crates/cloudkeel", NORMAL, "providers/aws"),
            ("crates/cloudkeel", NORMAL, "providers/local"),
            ("crates/api", NORMAL, "serde"),
        ],
    );
    assert_eq!(violations(&designed, RULES), Vec::<String>::new());
}

#[test]
fn every_other_edge_is_caught_and_named() {
    for (from, kind, to) in [
        ("crates/api", NORMAL, "crates/http"),
        ("crates/api", DEV, "crates/testkit"),
        ("crates/http", NORMAL, "crates/controllers"),
        ("crates/http", DEV, "crates/testkit"),
        ("crates/controllers", NORMAL, "providers/aws"),
        ("crates/controllers", DEV, "providers/aws"),
        ("crates/controllers", BUILD, "providers/aws"),
        ("crates/controllers", NORMAL, "crates/http"),
        ("crates/controllers", NORMAL, "crates/testkit"),
        ("crates/controllers", BUILD, "crates/testkit"),
        ("crates/controllers", NORMAL, "crates/manager"),
        ("crates/manager", NORMAL, "providers/local"),
        ("crates/manager", NORMAL, "crates/testkit"),
        ("crates/embedded", NORMAL, "crates/controllers"),
        ("crates/embedded", DEV, "crates/controllers"),
        ("crates/testkit", NORMAL, "crates/controllers"),
        ("crates/testkit", DEV, "providers/aws"),
        ("providers/aws", NORMAL, "crates/controllers"),
        ("providers/aws", DEV, "crates/controllers"),
        ("providers/aws", BUILD, "crates/controllers"),
        ("providers/aws", NORMAL, "crates/manager"),
        ("providers/aws", DEV, "crates/embedded"),
        ("providers/aws", NORMAL, "crates/testkit"),
        ("providers/aws", NORMAL, "providers/local"),
        ("crates/cloudkeel", NORMAL, "xtask"),
        ("xtask", NORMAL, "crates/api"),
        ("xtask", DEV, "crates/testkit"),
    ] {
        let found = violations(&workspace(ALL, &[(from, kind, to)]), RULES);
        let start = format!(
            "{from}/Cargo.toml: `{from}` may not have the {} `{to}`",
            in_words(kind)
        );
        assert!(
            found.len() == 1 && found[0].starts_with(&start),
            "{start}, but: {found:?}"
        );
    }
}

#[test]
fn a_violation_says_what_is_allowed() {
    let wrong = workspace(ALL, &[("providers/aws", NORMAL, "crates/testkit")]);
    assert_eq!(
        violations(&wrong, RULES),
        [
            "providers/aws/Cargo.toml: `providers/aws` may not have the dependency `crates/testkit` \
          (crates/testkit); allowed: crates/api, crates/http, crates/toolkit; in tests also crates/testkit, emulators/*"
        ],
    );
}

#[test]
fn a_crate_without_a_rule_is_an_error_that_says_where_to_add_one() {
    for place in ["crates/extra", "providers/aws/nested", "tools"] {
        let found = violations(&workspace(&[place], &[]), RULES);
        assert_eq!(
            found,
            [format!(
                "{place}/Cargo.toml: no rule says what the crate `{place}` may depend on; add a \
                 row for \"{place}\" to RULES in xtask/src/edges/rules.rs"
            )],
        );
    }
}

#[test]
fn the_contract_must_not_build_a_client_however_deep() {
    for client in ["kube", "k8s-openapi", "reqwest", "hyper", "axum", "tonic"] {
        let direct = workspace(ALL, &[("crates/api", NORMAL, client)]);
        assert_eq!(violations(&direct, RULES).len(), 1, "{client} directly");

        let deep = workspace(
            ALL,
            &[
                ("crates/api", NORMAL, "a"),
                ("a", NORMAL, "b"),
                ("b", NORMAL, client),
            ],
        );
        assert_eq!(
            violations(&deep, RULES),
            [format!(
                "crates/api/Cargo.toml: `crates/api` must not build `{client}`: \
                 crates/api → a → b → {client}"
            )],
        );
    }
}

#[test]
fn tests_and_build_scripts_may_use_a_client() {
    for (case, edges) in [
        (
            "in its tests",
            [("crates/api", DEV, "a"), ("a", NORMAL, "kube")],
        ),
        (
            "in a build script below it",
            [("crates/api", NORMAL, "a"), ("a", BUILD, "kube")],
        ),
    ] {
        assert!(
            violations(&workspace(ALL, &edges), RULES).is_empty(),
            "{case}"
        );
    }
}

#[test]
fn a_cycle_does_not_trap_the_search() {
    let cycle = workspace(
        ALL,
        &[
            ("crates/api", NORMAL, "a"),
            ("a", NORMAL, "b"),
            ("b", NORMAL, "a"),
            ("b", NORMAL, "crates/api"),
        ],
    );
    assert!(violations(&cycle, RULES).is_empty());
}

#[test]
fn every_place_that_a_rule_names_has_a_rule() {
    for rule in RULES {
        for used in rule.uses.iter().chain(rule.tests_use) {
            assert!(
                RULES
                    .iter()
                    .any(|other| other.place == *used || matches(other.place, used)),
                "{}: {used}",
                rule.place
            );
        }
    }
}
