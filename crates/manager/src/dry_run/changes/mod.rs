//! What a patch changes of an object, in words. Pure.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

/// What this patch would change of the object as it is; nothing if the object is as the patch says.
///
/// It knows the patches that the controllers write. What it does not know is named by its path.
pub(crate) fn changes(present: &Value, patch: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for part in ["spec", "status", "metadata"] {
        let fields = patch.get(part).unwrap_or(&Value::Null);
        for (field, wanted) in entries(fields) {
            let now = present.get(part).and_then(|part| part.get(field));
            let now = now.unwrap_or(&Value::Null);
            match (part, field.as_str()) {
                ("metadata", "labels") => keyed("label", now, wanted, &mut found),
                ("metadata", "annotations") => keyed("annotation", now, wanted, &mut found),
                ("metadata", "finalizers") => {
                    let new = texts(wanted).filter(|it| !texts(now).any(|had| had == *it));
                    found.extend(new.map(|it| format!("add finalizer {it}")));
                }
                ("metadata", "$deleteFromPrimitiveList/finalizers") => {
                    let had = present.pointer("/metadata/finalizers");
                    let had = had.unwrap_or(&Value::Null);
                    let gone = texts(wanted).filter(|it| texts(had).any(|had| had == *it));
                    found.extend(gone.map(|it| format!("remove finalizer {it}")));
                }
                ("spec", "providerID") if now != wanted => {
                    found.push(format!("set provider ID {}", text_of(wanted)));
                }
                ("spec", "podCIDRs") if now != wanted => {
                    let networks: Vec<_> = texts(wanted).collect();
                    found.push(format!("set Pod CIDRs {}", networks.join(", ")));
                }
                ("metadata", "uid" | "resourceVersion" | "name" | "namespace")
                | ("spec", "podCIDR" | "providerID" | "podCIDRs") => {}
                ("spec", "taints") => taints(now, wanted, &mut found),
                ("status", "addresses") => addresses(now, wanted, &mut found),
                ("status", "conditions") => conditions(now, wanted, &mut found),
                ("status", "loadBalancer") => ingress(now, wanted, &mut found),
                _ if now != wanted => found.push(format!("set {part}.{field}")),
                _ => {}
            }
        }
    }
    found
}

/// Labels or annotations. Those without a value are removed.
fn keyed(kind: &str, now: &Value, wanted: &Value, found: &mut Vec<String>) {
    let (mut set, mut removed) = (Vec::new(), Vec::new());
    for (key, value) in entries(wanted) {
        let had = now.get(key);
        match value.as_str() {
            Some(value) if had.and_then(Value::as_str) != Some(value) => {
                set.push(format!("{key}={value}"));
            }
            None if had.is_some() => removed.push(key.clone()),
            _ => {}
        }
    }
    for (verb, keys) in [("set", set), ("remove", removed)] {
        match keys.as_slice() {
            [] => {}
            [one] => found.push(format!("{verb} {kind} {one}")),
            more => found.push(format!("{verb} {kind}s {}", more.join(" "))),
        }
    }
}

/// A whole list of taints. When one was added is no difference.
fn taints(now: &Value, wanted: &Value, found: &mut Vec<String>) {
    let name = |taint: &Value| {
        let [key, value, effect] = ["key", "value", "effect"].map(|field| text_in(taint, field));
        if value.is_empty() {
            format!("{key}:{effect}")
        } else {
            format!("{key}={value}:{effect}")
        }
    };
    let names = |list: &Value| items(list).map(name).collect::<Vec<_>>();
    let (had, wanted) = (names(now), names(wanted));
    let added = wanted.iter().filter(|taint| !had.contains(taint));
    found.extend(added.map(|taint| format!("add taint {taint}")));
    let removed = had.iter().filter(|taint| !wanted.contains(taint));
    found.extend(removed.map(|taint| format!("remove taint {taint}")));
}

fn addresses(now: &Value, wanted: &Value, found: &mut Vec<String>) {
    let names = |list: &Value| {
        let addresses = items(list).filter(|it| it.get("$patch").is_none());
        let names =
            addresses.map(|it| format!("{} {}", text_in(it, "type"), text_in(it, "address")));
        names.collect::<Vec<_>>()
    };
    let wanted = names(wanted);
    if names(now) != wanted {
        found.push(format!("set addresses {}", wanted.join(", ")));
    }
}

/// Conditions by type. A new message or time alone is no difference.
fn conditions(now: &Value, wanted: &Value, found: &mut Vec<String>) {
    for condition in items(wanted) {
        let kind = text_in(condition, "type");
        let had = items(now).find(|had| text_in(had, "type") == kind);
        if text_in(condition, "$patch") == "delete" {
            found.extend(had.map(|_| format!("remove condition {kind}")));
            continue;
        }
        let said = |condition: &Value| {
            ["status", "reason"].map(|field| text_in(condition, field).to_owned())
        };
        if had.map(said) != Some(said(condition)) {
            let [status, reason] = said(condition);
            found.push(format!("set condition {kind} to {status} ({reason})"));
        }
    }
}

fn ingress(now: &Value, wanted: &Value, found: &mut Vec<String>) {
    let names = |balancer: &Value| {
        let entries = items(balancer.get("ingress").unwrap_or(&Value::Null));
        let names = entries.map(|at| {
            let ip = text_in(at, "ip");
            if ip.is_empty() {
                text_in(at, "hostname")
            } else {
                ip
            }
            .to_owned()
        });
        names.collect::<Vec<_>>()
    };
    let (had, wanted) = (names(now), names(wanted));
    if had == wanted {
        return;
    }
    found.push(if wanted.is_empty() {
        format!("remove published address {}", had.join(", "))
    } else {
        format!("publish address {}", wanted.join(", "))
    });
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    items(value).filter_map(Value::as_str)
}

fn text_in<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
