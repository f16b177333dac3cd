//! As much of `OpenAPI` v3 as `kubectl apply` needs: that a PATCH takes `fieldValidation`, so
//! that it leaves the checking of fields to the server.

use serde_json::{Map, Value, json};

use crate::kinds::KINDS;
use crate::object::put;

pub(super) fn index(groups: &[&str]) -> Value {
    let mut paths = json!({"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}});
    for group in groups {
        let path = format!("apis/{group}/v1");
        let url = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
        put(&mut paths, &[&path], url);
    }
    json!({"paths": paths})
}

pub(super) fn document(group: &str) -> Value {
    let mut paths = Map::new();
    for kind in KINDS.iter().filter(|kind| kind.group == group) {
        let root = if group.is_empty() {
            "/api/v1".to_owned()
        } else {
            format!("/apis/{group}/v1")
        };
        let home = if kind.namespaced {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        let path = format!("{root}{home}/{}/{{name}}", kind.plural);
        let parameter =
            json!({"name": "fieldValidation", "in": "query", "schema": {"type": "string"}});
        let patch = json!({
            "parameters": [parameter],
            "x-kubernetes-group-version-kind": {"group": group, "version": "v1", "kind": kind.kind},
        });
        paths.insert(path, json!({"patch": patch}));
    }
    let info = json!({"title": "Kubernetes", "version": "embedded"});
    json!({"openapi": "3.0.0", "info": info, "paths": paths})
}
