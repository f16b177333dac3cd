//! What there is: groups, resources, the version, health, and just enough of `OpenAPI` for `kubectl`.

mod openapi;

use serde_json::{Value, json};

use crate::api::Answer;
use crate::kinds::{KINDS, Kind};
use crate::refusal::Refusal;

/// The version that the types come from.
const MINOR: &str = "35";

/// Reviews: group, plural, kind.
const REVIEWS: &[(&str, &str, &str)] = &[
    (
        "authentication.k8s.io",
        "selfsubjectreviews",
        "SelfSubjectReview",
    ),
    ("authentication.k8s.io", "tokenreviews", "TokenReview"),
    (
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
    ),
    (
        "authorization.k8s.io",
        "subjectaccessreviews",
        "SubjectAccessReview",
    ),
];

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The answer to a path that leads to no object.
pub(crate) fn answer(parts: &[String]) -> Result<Answer, Refusal> {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let body = match parts.as_slice() {
        ["api"] => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        }),
        ["apis"] => json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups().into_iter().map(group).collect::<Vec<_>>(),
        }),
        ["api", "v1"] => resources("", "v1"),
        ["apis", name] if groups().contains(name) => with_type(group(name), "APIGroup"),
        ["apis", name, "v1"] if groups().contains(name) => resources(name, &format!("{name}/v1")),
        ["version"] => version(),
        ["healthz" | "livez" | "readyz", ..] => return Ok(Answer::Text(200, "ok")),
        ["openapi", "v3"] => openapi::index(&groups()),
        ["openapi", "v3", "api", "v1"] => openapi::document(""),
        ["openapi", "v3", "apis", name, "v1"] if groups().contains(name) => openapi::document(name),
        [] => json!({"paths": ["/api", "/apis", "/healthz", "/openapi/v3", "/version"]}),
        ["api", "v1", ..] => return Err(Refusal::no_such_path()),
        ["apis", name, "v1", ..] if groups().contains(name) => return Err(Refusal::no_such_path()),
        _ => return Ok(Answer::Text(404, "404 page not found\n")),
    };
    Ok(Answer::ok(body))
}

fn with_type(mut body: Value, kind: &str) -> Value {
    crate::object::put(&mut body, &["kind"], kind);
    crate::object::put(&mut body, &["apiVersion"], "v1");
    body
}

/// The groups besides the core.
fn groups() -> Vec<&'static str> {
    let mut groups: Vec<_> = KINDS.iter().map(|kind| kind.group).collect();
    groups.extend(REVIEWS.iter().map(|(group, _, _)| *group));
    groups.retain(|group| !group.is_empty());
    groups.sort_unstable();
    groups.dedup();
    groups
}

fn group(name: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

fn resources(group: &str, group_version: &str) -> Value {
    let kinds = KINDS.iter().filter(|kind| kind.group == group);
    let mut resources: Vec<_> = kinds.flat_map(of_kind).collect();
    let reviews = REVIEWS.iter().filter(|(of, _, _)| *of == group);
    resources.extend(reviews.map(|(_, plural, kind)| {
        json!({
            "name": plural,
            "singularName": kind.to_lowercase(),
            "namespaced": false,
            "kind": kind,
            "verbs": ["create"],
        })
    }));
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    })
}

fn of_kind(kind: &Kind) -> Vec<Value> {
    let is_known = |verb: &&&str| **verb != "deletecollection" || kind.deletes_collections();
    let verbs: Vec<_> = VERBS.iter().filter(is_known).collect();
    let mut whole = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs,
    });
    if !kind.short.is_empty() {
        crate::object::put(&mut whole, &["shortNames"], kind.short);
    }
    let parts = kind.subresources.iter().map(|part| {
        let verbs: &[&str] = if *part == "token" {
            &["create"]
        } else {
            &["get", "patch", "update"]
        };
        json!({
            "name": format!("{}/{part}", kind.plural),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": verbs,
        })
    });
    std::iter::once(whole).chain(parts).collect()
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": format!("v1.{MINOR}.0+cloudkeel-embedded"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    })
}
