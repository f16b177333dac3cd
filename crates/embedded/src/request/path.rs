//! What a path leads to.

use percent_encoding::percent_decode_str;

use crate::kinds::Kind;

/// A resource, one of its objects, or a part of one.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// Where a path leads.
pub(crate) enum Place {
    /// Objects of the API.
    Objects(Target),
    /// A review that is answered and not kept: its group and plural.
    Review(String, String),
    /// Everything else, by its parts.
    Other(Vec<String>),
}

impl Target {
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> String {
        self.kind.key(self.namespace(), self.name())
    }
}

impl Place {
    pub(crate) fn find(path: &str) -> Self {
        let parts: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let found = match texts.as_slice() {
            ["api", version, rest @ ..] => objects("", version, rest),
            ["apis", group, version, rest @ ..] => objects(group, version, rest),
            _ => None,
        };
        found.unwrap_or(Self::Other(parts))
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Option<Place> {
    let (namespace, rest) = match rest {
        ["namespaces", namespace, plural, ..] if !matches!(*plural, "status" | "finalize") => {
            (Some((*namespace).to_owned()), rest.get(2..)?)
        }
        _ => (None, rest),
    };
    let (plural, rest) = rest.split_first()?;
    if plural.ends_with("reviews") {
        return Some(Place::Review(group.to_owned(), (*plural).to_owned()));
    }
    let kind = Kind::find(group, version, plural)?;
    let (name, subresource) = match rest {
        [] => (None, None),
        [name] => (Some(*name), None),
        [name, part] if kind.subresources.contains(part) => (Some(*name), Some(*part)),
        _ => return None,
    };
    if namespace.is_some() != kind.namespaced && (namespace.is_some() || name.is_some()) {
        return None;
    }
    Some(Place::Objects(Target {
        kind,
        namespace,
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str) -> String {
        match Place::find(path) {
            Place::Objects(target) => format!(
                "{} ns={} name={} sub={}",
                target.kind.qualified_plural(),
                target.namespace(),
                target.name(),
                target.subresource.clone().unwrap_or_default(),
            ),
            Place::Review(group, plural) => format!("review {plural}.{group}"),
            Place::Other(parts) => format!("other {}", parts.len()),
        }
    }

    #[test]
    fn paths_lead_to_resources_objects_and_parts() {
        for (path, place) in [
            ("/api/v1/nodes", "nodes ns= name= sub="),
            ("/api/v1/nodes/a/status", "nodes ns= name=a sub=status"),
            ("/api/v1/namespaces/shop", "namespaces ns= name=shop sub="),
            (
                "/api/v1/namespaces/shop/finalize",
                "namespaces ns= name=shop sub=finalize",
            ),
            (
                "/api/v1/namespaces/shop/services",
                "services ns=shop name= sub=",
            ),
            (
                "/api/v1/namespaces/shop/services/web",
                "services ns=shop name=web sub=",
            ),
            ("/api/v1/services", "services ns= name= sub="),
            (
                "/apis/coordination.k8s.io/v1/namespaces/n/leases/l",
                "leases.coordination.k8s.io ns=n name=l sub=",
            ),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                "clusterroles.rbac.authorization.k8s.io ns= name=system:node sub=",
            ),
            (
                "/apis/authentication.k8s.io/v1/tokenreviews",
                "review tokenreviews.authentication.k8s.io",
            ),
            ("/api/v1/services/web", "other 4"),
            ("/api/v1/namespaces/a/nodes/b", "other 6"),
            ("/api/v1/nodes/a/proxy", "other 5"),
            ("/api/v1", "other 2"),
            ("/healthz", "other 1"),
        ] {
            assert_eq!(shown(path), place, "{path}");
        }
    }
}
