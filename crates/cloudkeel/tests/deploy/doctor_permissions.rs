//! What doctor asks for is what the shipped roles grant. That the code needs each of them, and no more, is shown by
//! `own_roles` and `missing`.

use std::collections::BTreeSet;

use cloudkeel_diagnose::PERMISSIONS;

use crate::permissions::Grant;
use crate::trial::own_grants;

/// All files of `deploy/manifests/rbac`.
const FILES: &[&str] = &[
    "cluster",
    "election",
    "events",
    "ipam",
    "lifecycle",
    "node",
    "route",
    "service",
    "serving",
];

/// A permission: group, resource, verb, namespace, and the object that it is limited to.
type Right = (String, String, String, Option<String>, Option<String>);

/// What Kubernetes grants by a Role that every cluster has.
fn built_in(role: &str, namespace: &str) -> Vec<Right> {
    assert_eq!(role, "extension-apiserver-authentication-reader");
    let right = |verb: &str| {
        (
            String::new(),
            "configmaps".to_owned(),
            verb.to_owned(),
            Some(namespace.to_owned()),
            Some("extension-apiserver-authentication".to_owned()),
        )
    };
    ["get", "list", "watch"].map(right).into()
}

fn granted() -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for grant in own_grants(FILES) {
        match grant {
            Grant::BuiltIn { role, namespace } => rights.extend(built_in(&role, &namespace)),
            Grant::Own {
                namespace, rules, ..
            } => {
                for rule in rules {
                    let groups = rule.api_groups.unwrap_or_default();
                    let resources = rule.resources.unwrap_or_default();
                    let object = rule.resource_names.unwrap_or_default().pop();
                    for (group, resource) in groups
                        .iter()
                        .flat_map(|group| resources.iter().map(move |it| (group, it)))
                    {
                        rights.extend(rule.verbs.iter().map(|verb| {
                            (
                                group.clone(),
                                resource.clone(),
                                verb.clone(),
                                namespace.clone(),
                                object.clone(),
                            )
                        }));
                    }
                }
            }
        }
    }
    rights
}

fn asked() -> BTreeSet<Right> {
    let right = |permission: &cloudkeel_diagnose::Permission| {
        let lease = permission.of_lease.then_some("cloud-controller-manager");
        (
            permission.group.to_owned(),
            permission.resource.to_owned(),
            permission.verb.to_owned(),
            permission.namespace.map(str::to_owned),
            lease.or(permission.named).map(str::to_owned),
        )
    };
    PERMISSIONS.iter().map(right).collect()
}

#[test]
fn doctor_asks_for_what_the_shipped_roles_grant() {
    let files = std::fs::read_dir(crate::permissions::manifests().join("rbac"));
    let files = files.expect("a folder").count();
    assert_eq!(files, FILES.len() + 1, "all but kustomization.yaml");
    let (granted, asked) = (granted(), asked());
    let missing: Vec<_> = asked.difference(&granted).collect();
    assert!(missing.is_empty(), "doctor asks for more: {missing:#?}");
    // What is granted everywhere need not be asked for in a namespace too.
    let is_asked = |right: &&Right| {
        let (group, resource, verb, ..) = right;
        let everywhere = (group.clone(), resource.clone(), verb.clone(), None, None);
        asked.contains(*right) || asked.contains(&everywhere)
    };
    let unknown: Vec<_> = granted.iter().filter(|right| !is_asked(right)).collect();
    assert!(unknown.is_empty(), "doctor does not ask for {unknown:#?}");
}
