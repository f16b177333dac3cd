//! The table of flags: their groups, and whether they have an effect.

use cloudkeel_api::{Descriptor, Documented, KeyDoc, KeyPlace, nearest};
use serde::Serialize;

/// Whether a flag has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// It works.
    Works,
    /// Accepted, because command lines contain it, but without effect, and why.
    None(&'static str),
    /// It works, but should not be used any more, and why.
    Deprecated(&'static str),
}

/// A group of flags, in the order and under the names of upstream's `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Flags that no other group has.
    Generic,
    /// cloudkeel's own.
    Cloudkeel,
    /// Debugging.
    Debugging,
    /// Leader migration.
    LeaderMigration,
    /// The node controller.
    CloudNode,
    /// The node lifecycle controller.
    CloudNodeLifecycle,
    /// The service controller.
    Service,
    /// The node IPAM controller.
    NodeIpam,
    /// Which webhooks run.
    Webhook,
    /// Where they are served.
    WebhookServing,
    /// The secure port.
    SecureServing,
    /// Authentication.
    Authentication,
    /// Authorization.
    Authorization,
    /// Miscellaneous.
    Misc,
    /// Logging and the rest.
    Global,
    /// What a provider declares.
    Provider,
}

impl Group {
    /// The heading in `--help`.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Generic => "Generic flags",
            Self::Cloudkeel => "cloudkeel flags",
            Self::Debugging => "Debugging flags",
            Self::LeaderMigration => "Leader-migration flags",
            Self::CloudNode => "Cloud-node-controller flags",
            Self::CloudNodeLifecycle => "Cloud-node-lifecycle-controller flags",
            Self::Service => "Service-lb-controller flags",
            Self::NodeIpam => "Node-ipam-controller flags",
            Self::Webhook => "Webhook flags",
            Self::WebhookServing => "Webhook serving flags",
            Self::SecureServing => "Secure serving flags",
            Self::Authentication => "Authentication flags",
            Self::Authorization => "Authorization flags",
            Self::Misc => "Misc flags",
            Self::Global => "Global flags",
            Self::Provider => "Provider flags",
        }
    }
}

/// One flag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlagRow {
    /// Its group.
    pub group: Group,
    /// What it is.
    pub doc: KeyDoc,
    /// Whether it has an effect.
    pub effect: Effect,
}

impl FlagRow {
    /// Whether the flag may be given without a value.
    pub fn is_switch(&self) -> bool {
        self.doc.value_type == "bool" || self.doc.name == "version"
    }
}

/// Shorthand for the rows of one group.
pub(super) fn rows<const N: usize>(
    group: Group,
    keys: [(&dyn Documented, Effect); N],
) -> Vec<FlagRow> {
    keys.into_iter()
        .map(|(key, effect)| FlagRow {
            group,
            doc: key.doc(),
            effect,
        })
        .collect()
}

/// Every flag that the command line takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagTable {
    rows: Vec<FlagRow>,
}

impl FlagTable {
    /// Upstream's flags, ours, and those that these providers declare.
    pub fn new(providers: &[Descriptor]) -> Self {
        let mut rows: Vec<FlagRow> = [
            super::generic::table(),
            super::own::table(),
            super::controllers::table(),
            super::serving::table(),
            super::auth::table(),
            super::logging::table(),
        ]
        .into_iter()
        .flatten()
        .collect();
        for doc in providers.iter().flat_map(|provider| &provider.keys) {
            let declared = doc.place == KeyPlace::Flag;
            if declared && !rows.iter().any(|row| row.doc.name == doc.name) {
                rows.push(FlagRow {
                    group: Group::Provider,
                    doc: doc.clone(),
                    effect: Effect::Works,
                });
            }
        }
        rows.sort_by_key(|row| row.group);
        Self { rows }
    }

    /// All rows, by group.
    pub fn rows(&self) -> &[FlagRow] {
        &self.rows
    }

    /// The flag of this name.
    pub fn get(&self, name: &str) -> Option<&FlagRow> {
        self.rows.iter().find(|row| row.doc.name == name)
    }

    /// The flag that was probably meant.
    pub fn nearest(&self, name: &str) -> Option<&'static str> {
        nearest(name, self.rows.iter().map(|row| row.doc.name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct_and_helped() {
        let table = FlagTable::new(&[]);
        let names: BTreeSet<_> = table.rows().iter().map(|row| row.doc.name).collect();
        assert_eq!(names.len(), table.rows().len());
        for row in table.rows() {
            let name = row.doc.name;
            assert!(row.doc.help.ends_with('.'), "{name}");
            assert!(!name.contains('_') && !name.starts_with('-'), "{name}");
        }
    }

    /// The names that a Go CCM of Kubernetes 1.37 accepts, by group.
    const UPSTREAM: &str = "cloud-provider cloud-config cluster-name cluster-cidr \
        allocate-node-cidrs cidr-allocator-type configure-cloud-routes route-reconciliation-period \
        use-service-account-credentials external-cloud-volume-plugin allow-untagged-cloud \
        node-sync-period min-resync-period kube-api-content-type kube-api-qps kube-api-burst \
        controller-start-interval controllers feature-gates leader-elect \
        leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period \
        leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace \
        profiling contention-profiling enable-leader-migration leader-migration-config \
        concurrent-node-syncs concurrent-node-status-updates node-monitor-period \
        concurrent-node-lifecycle-syncs concurrent-service-syncs webhooks webhook-secure-port \
        webhook-bind-address webhook-disable-http2-serving webhook-cert-dir webhook-tls-cert-file \
        webhook-tls-private-key-file webhook-tls-cipher-suites webhook-tls-curve-preferences \
        webhook-tls-min-version webhook-tls-sni-cert-key bind-address secure-port \
        disable-http2-serving cert-dir tls-cert-file tls-private-key-file tls-cipher-suites \
        tls-curve-preferences tls-min-version tls-sni-cert-key http2-max-streams-per-connection \
        permit-port-sharing permit-address-sharing authentication-kubeconfig \
        authentication-skip-lookup authentication-tolerate-lookup-failure \
        authentication-token-webhook-cache-ttl client-ca-file requestheader-client-ca-file \
        requestheader-allowed-names requestheader-uid-headers requestheader-username-headers \
        requestheader-group-headers requestheader-extra-headers-prefix authorization-kubeconfig \
        authorization-always-allow-paths authorization-webhook-cache-authorized-ttl \
        authorization-webhook-cache-unauthorized-ttl master kubeconfig \
        node-status-update-frequency version help v vmodule log-flush-frequency logging-format \
        log-text-split-stream log-json-split-stream log-text-info-buffer-size \
        log-json-info-buffer-size service-cluster-ip-range node-cidr-mask-size \
        node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6";

    #[test]
    fn every_upstream_flag_is_there() {
        let table = FlagTable::new(&[]);
        let missing: Vec<_> = UPSTREAM
            .split_whitespace()
            .filter(|name| table.get(name).is_none())
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn a_flag_that_is_not_upstreams_is_in_our_group() {
        let upstream: BTreeSet<_> = UPSTREAM.split_whitespace().collect();
        for row in FlagTable::new(&[]).rows() {
            let ours = row.group == Group::Cloudkeel;
            assert_ne!(ours, upstream.contains(row.doc.name), "{}", row.doc.name);
        }
    }
}
