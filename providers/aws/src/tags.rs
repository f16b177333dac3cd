//! Tags that say which cluster and which Service something belongs to. Pure.

use cloudkeel_api::{CloudError, ServiceRef};

use crate::config::Config;
use crate::wire::Tags;

/// What the tag of a cluster begins with; its ID follows.
pub(crate) const CLUSTER_PREFIX: &str = "kubernetes.io/cluster/";

/// The old form, whose value is the ID.
pub(crate) const LEGACY: &str = "KubernetesCluster";

/// The Service that a load balancer was made for.
pub(crate) const SERVICE: &str = "kubernetes.io/service-name";

const OWNED: &str = "owned";

/// The cluster, as tags name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterTag {
    pub(crate) id: String,
    /// Whether tags of the old form are written too.
    pub(crate) has_legacy: bool,
}

impl ClusterTag {
    /// From the settings, else from the tags of the own instance.
    pub(crate) fn find(config: &Config, own: Option<&Tags>) -> Result<Self, CloudError> {
        if let Some(id) = config.legacy_cluster_tag.clone() {
            let has_legacy = true;
            return Ok(Self { id, has_legacy });
        }
        if let Some(id) = config.cluster_id.clone() {
            let has_legacy = false;
            return Ok(Self { id, has_legacy });
        }
        let own = own.into_iter().flatten();
        let of = |(key, value): (&String, &String)| match key.strip_prefix(CLUSTER_PREFIX) {
            Some(id) => Some((id.to_owned(), false)),
            None => (key == LEGACY).then(|| (value.clone(), true)),
        };
        let mut found: Vec<_> = own.filter_map(of).collect();
        // The old form beside the new one is written on as well, so it is kept of two.
        found.sort_by(|one, other| (&one.0, other.1).cmp(&(&other.0, one.1)));
        found.dedup_by(|other, first| other.0 == first.0);
        match <[_; 1]>::try_from(found) {
            Ok([(id, has_legacy)]) => Ok(Self { id, has_legacy }),
            Err(found) if found.is_empty() => Err(CloudError::invalid(
                "find cluster ID",
                format!(
                    "the own instance has no tag {CLUSTER_PREFIX}<id>: tag it, or set KubernetesClusterID \
                     (clusterId)"
                ),
            )),
            Err(found) => {
                let ids: Vec<_> = found.into_iter().map(|(id, _)| id).collect();
                let ids = ids.join(" and ");
                let message = format!("the own instance has the tags of clusters {ids}: keep one");
                Err(CloudError::invalid("find cluster ID", message))
            }
        }
    }

    pub(crate) fn key(&self) -> String {
        format!("{CLUSTER_PREFIX}{}", self.id)
    }

    /// The keys by which EC2 finds everything that [may be](Self::is_tagged) the cluster's.
    pub(crate) fn keys(&self) -> [String; 2] {
        [self.key(), LEGACY.to_owned()]
    }

    /// Whether something is for this cluster, alone or together with others.
    pub(crate) fn is_tagged(&self, tags: &Tags) -> bool {
        tags.contains_key(&self.key()) || tags.get(LEGACY) == Some(&self.id)
    }

    /// The tags of what is made for this cluster.
    pub(crate) fn owned(&self) -> Tags {
        let mut tags = Tags::from([(self.key(), OWNED.to_owned())]);
        if self.has_legacy {
            tags.insert(LEGACY.to_owned(), self.id.clone());
        }
        tags
    }

    /// The tags of a load balancer and its parts.
    pub(crate) fn of_service(&self, service: &ServiceRef) -> Tags {
        let mut tags = self.owned();
        tags.insert(SERVICE.to_owned(), service.to_string());
        tags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_cluster_is_found_in_settings_or_in_the_tags_of_the_own_instance() {
        let found = |pairs: &[(&str, &str)]| {
            let found = ClusterTag::find(&Config::default(), Some(&tags(pairs)));
            found
                .map(|tag| (tag.id, tag.has_legacy))
                .map_err(|e| e.to_string())
        };
        assert_eq!(
            found(&[("kubernetes.io/cluster/a", "owned")]),
            Ok(("a".to_owned(), false))
        );
        assert_eq!(
            found(&[("KubernetesCluster", "a")]),
            Ok(("a".to_owned(), true))
        );
        let both = [("kubernetes.io/cluster/a", ""), ("KubernetesCluster", "a")];
        assert_eq!(found(&both), Ok(("a".to_owned(), true)));
        let two = [
            ("kubernetes.io/cluster/a", ""),
            ("kubernetes.io/cluster/b", ""),
        ];
        assert!(found(&two).unwrap_err().contains("a and b"));
        assert!(
            found(&[("Name", "n")])
                .unwrap_err()
                .contains("KubernetesClusterID")
        );
    }

    #[test]
    fn both_forms_of_the_tag_are_the_clusters() {
        let cluster = ClusterTag {
            id: "x".to_owned(),
            has_legacy: false,
        };
        for (pairs, tagged) in [
            (&[("kubernetes.io/cluster/x", "shared")][..], true),
            (&[("KubernetesCluster", "x")], true),
            (&[("KubernetesCluster", "y")], false),
            (&[("kubernetes.io/cluster/y", "owned")], false),
        ] {
            let tags = tags(pairs);
            assert_eq!(cluster.is_tagged(&tags), tagged, "{pairs:?}");
            let is_found = cluster.keys().iter().any(|key| tags.contains_key(key));
            assert!(is_found || !tagged, "no filter by key finds {pairs:?}");
        }
    }
}
