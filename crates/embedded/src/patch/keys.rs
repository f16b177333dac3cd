//! How the lists of each type are merged. This is what the `patchStrategy` and `patchMergeKey` tags
//! of the Go types say.

/// What becomes of a list that a patch names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListRule {
    /// The patch's list takes its place.
    Replace,
    /// Texts are added that are not there.
    MergeTexts,
    /// Objects are merged that have the same value under this key.
    MergeBy(&'static str),
}

const LISTS: &[(&str, &str, ListRule)] = &[
    ("", "metadata.finalizers", ListRule::MergeTexts),
    ("", "metadata.ownerReferences", ListRule::MergeBy("uid")),
    ("Namespace", "status.conditions", ListRule::MergeBy("type")),
    ("Node", "spec.podCIDRs", ListRule::MergeTexts),
    ("Node", "status.addresses", ListRule::MergeBy("type")),
    ("Node", "status.conditions", ListRule::MergeBy("type")),
    ("Pod", "spec.containers", ListRule::MergeBy("name")),
    ("Pod", "spec.containers.env", ListRule::MergeBy("name")),
    (
        "Pod",
        "spec.containers.ports",
        ListRule::MergeBy("containerPort"),
    ),
    (
        "Pod",
        "spec.containers.volumeMounts",
        ListRule::MergeBy("mountPath"),
    ),
    ("Pod", "spec.hostAliases", ListRule::MergeBy("ip")),
    ("Pod", "spec.imagePullSecrets", ListRule::MergeBy("name")),
    ("Pod", "spec.initContainers", ListRule::MergeBy("name")),
    ("Pod", "spec.volumes", ListRule::MergeBy("name")),
    ("Pod", "status.conditions", ListRule::MergeBy("type")),
    ("Pod", "status.hostIPs", ListRule::MergeBy("ip")),
    ("Pod", "status.podIPs", ListRule::MergeBy("ip")),
    ("Service", "spec.ports", ListRule::MergeBy("port")),
    ("Service", "status.conditions", ListRule::MergeBy("type")),
    (
        "ServiceAccount",
        "imagePullSecrets",
        ListRule::MergeBy("name"),
    ),
    ("ServiceAccount", "secrets", ListRule::MergeBy("name")),
];

/// How the list at a path, without indices, is merged in a kind of objects.
pub(super) fn list_rule(kind: &str, path: &str) -> ListRule {
    let rule = LISTS
        .iter()
        .find(|(of, at, _)| (of.is_empty() || *of == kind) && *at == path);
    rule.map_or(ListRule::Replace, |(_, _, rule)| *rule)
}
