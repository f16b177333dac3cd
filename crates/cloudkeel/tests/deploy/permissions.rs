//! Roles as files have them: who may do what, verb by verb.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

/// The folder with everything that is shipped for a cluster.
pub(crate) fn manifests() -> PathBuf {
    crate::harness::package().join("../../deploy/manifests")
}

/// The documents of a YAML file.
pub(crate) fn documents(path: &Path) -> Vec<Value> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse(&text)
}

/// The documents of a YAML text.
pub(crate) fn parse(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What an account may do somewhere.
#[derive(Clone, Debug)]
pub(crate) enum Grant {
    /// By rules of our own. Without a namespace they hold everywhere.
    Own {
        role: String,
        namespace: Option<String>,
        rules: Vec<PolicyRule>,
    },
    /// By a Role that every cluster has.
    BuiltIn { role: String, namespace: String },
}

/// What the documents grant to this ServiceAccount of kube-system.
pub(crate) fn granted_to(account: &str, documents: &[Value]) -> Vec<Grant> {
    documents
        .iter()
        .filter(|binding| kind(binding).ends_with("RoleBinding"))
        .filter(|binding| is_bound_to(account, binding))
        .map(|binding| grant_of(binding, documents))
        .collect()
}

fn kind(document: &Value) -> &str {
    document["kind"].as_str().unwrap_or_default()
}

fn is_bound_to(account: &str, binding: &Value) -> bool {
    let subjects = binding["subjects"].as_array().expect("a list of subjects");
    subjects.iter().any(|subject| {
        subject["kind"] == "ServiceAccount"
            && subject["name"] == account
            && subject["namespace"] == "kube-system"
    })
}

fn grant_of(binding: &Value, documents: &[Value]) -> Grant {
    let namespace = binding["metadata"]["namespace"].as_str();
    let reference = &binding["roleRef"];
    let role = documents.iter().find(|role| {
        role["kind"] == reference["kind"]
            && role["metadata"]["name"] == reference["name"]
            && (kind(role) == "ClusterRole" || role["metadata"]["namespace"].as_str() == namespace)
    });
    let name = reference["name"].as_str().expect("a name").to_owned();
    match role {
        Some(role) => Grant::Own {
            role: name,
            namespace: namespace.map(str::to_owned),
            rules: serde_json::from_value(role["rules"].clone()).expect("rules"),
        },
        None => Grant::BuiltIn {
            role: name,
            namespace: namespace.expect("only Roles are built in").to_owned(),
        },
    }
}

/// Every single permission as `role resource verb`; a built-in role as its name alone.
pub(crate) fn permissions(grants: &[Grant]) -> BTreeSet<String> {
    let of_one = |grant: &Grant| match grant {
        Grant::BuiltIn { role, .. } => vec![role.clone()],
        Grant::Own { role, rules, .. } => rules
            .iter()
            .flat_map(|rule| each_permission(role, rule))
            .collect(),
    };
    grants.iter().flat_map(of_one).collect()
}

fn each_permission(role: &str, rule: &PolicyRule) -> Vec<String> {
    let resources = rule.resources.iter().flatten();
    resources
        .flat_map(|resource| rule.verbs.iter().map(move |verb| (resource, verb)))
        .map(|(resource, verb)| format!("{role} {resource} {verb}"))
        .collect()
}

/// The same grants but for one permission.
pub(crate) fn without(grants: &[Grant], permission: &str) -> Vec<Grant> {
    let before = permissions(grants);
    assert!(
        before.contains(permission),
        "{permission} is none of {before:?}"
    );
    let after: Vec<_> = grants
        .iter()
        .filter(|grant| !matches!(grant, Grant::BuiltIn { role, .. } if role == permission))
        .cloned()
        .map(|grant| take_away(grant, permission))
        .collect();
    let left: BTreeSet<_> = permissions(&after);
    let gone: Vec<_> = before.difference(&left).collect();
    assert_eq!(gone, [permission], "one is taken away and no other");
    after
}

fn take_away(mut grant: Grant, permission: &str) -> Grant {
    if let Grant::Own { role, rules, .. } = &mut grant {
        for rule in rules.iter_mut() {
            let resource = rule.resources.iter().flatten().next().cloned();
            let Some(resource) = resource else { continue };
            rule.verbs
                .retain(|verb| format!("{role} {resource} {verb}") != permission);
        }
        rules.retain(|rule| !rule.verbs.is_empty());
    }
    grant
}
