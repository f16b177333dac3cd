//! Owner labels for clouds whose tags have no values: one tag holds all of them.

use cloudkeel_api::BalancerRef;

use super::sharing::tagged_as_shared;
use super::{Labels, OwnerLabels, ServiceLabel};

/// The parts of the tag, in their order.
const PARTS: [&str; 4] = ["service-uid", "cluster-uid", "namespace", "name"];

/// A tag such as `cloudkeel:<UID of the Service>:<UID of the cluster>:<namespace>:<name>`.
///
/// ```
/// # use cloudkeel_toolkit::OwnerTag;
/// const TAG: OwnerTag = OwnerTag { prefix: "cloudkeel:" };
/// let tags = ["prod".to_owned(), "cloudkeel:u-1:c-1:default:web".to_owned()];
/// assert_eq!(TAG.among(&tags), Some(&tags[1]));
/// let service = OwnerTag::LABELS.service(&TAG.labels(&tags)).unwrap();
/// assert_eq!((service.to_string(), service.uid), ("default/web".to_owned(), "u-1".to_owned()));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OwnerTag {
    /// What the tag begins with, with its colon.
    pub prefix: &'static str,
}

impl OwnerTag {
    /// One that begins with this, which ends with a colon.
    pub const fn new(prefix: &'static str) -> Self {
        Self { prefix }
    }

    /// What the tag says, by the names of its parts.
    pub const LABELS: OwnerLabels = OwnerLabels {
        service_uid: PARTS[0],
        cluster_uid: PARTS[1],
        service: ServiceLabel::Split {
            namespace: PARTS[2],
            name: PARTS[3],
        },
        others: &[],
    };

    /// The tag that a balancer of this Service gets.
    pub fn of(&self, balancer_ref: &BalancerRef, cluster: Option<&str>) -> String {
        let labels = Self::LABELS.added(&Labels::new(), balancer_ref, cluster);
        let parts = PARTS.map(|part| labels.get(part).map_or("", String::as_str));
        format!("{}{}", self.prefix, parts.join(":"))
    }

    /// The owner tag among others.
    pub fn among<'a>(&self, tags: &'a [String]) -> Option<&'a String> {
        tags.iter().find(|tag| tag.starts_with(self.prefix))
    }

    /// The tags that a balancer of this Service should have, and those that it has. What is tagged stays tagged. A new one gets
    /// its owner's tag, as does one that is adopted. `others` are the tags of all balancers of this cluster. One that is shared
    /// with other clients is tagged so.
    pub fn tags(
        &self,
        present: Option<&[String]>,
        balancer_ref: &BalancerRef,
        cluster: Option<&str>,
        others: &[String],
    ) -> Vec<String> {
        let is_new = present.is_none() || balancer_ref.adopt.is_some();
        let mut tags = present.unwrap_or_default().to_vec();
        if is_new && self.among(&tags).is_none() {
            tags.push(self.of(balancer_ref, cluster));
        }
        let missing = others.iter().filter(|tag| !tags.contains(tag));
        let missing: Vec<_> = missing.cloned().collect();
        tags.extend(missing);
        tagged_as_shared(balancer_ref, &mut tags);
        tags
    }

    /// What the owner tag among these says.
    pub fn labels(&self, tags: &[String]) -> Labels {
        let tag = self
            .among(tags)
            .and_then(|tag| tag.strip_prefix(self.prefix));
        let values = tag.into_iter().flat_map(|tag| tag.split(':'));
        let pairs = PARTS
            .iter()
            .zip(values)
            .filter(|(_, value)| !value.is_empty());
        pairs
            .map(|(part, value)| ((*part).to_owned(), value.to_owned()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::cluster_and_service;

    use super::*;

    #[test]
    fn what_is_tagged_stays_tagged_and_a_new_or_adopted_one_gets_its_owner() {
        let (cluster, service) = cluster_and_service();
        let tag = OwnerTag { prefix: "x:" };
        let owner = "x:u-1:c-1:ns:web";
        let texts = |tags: &[&str]| tags.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (case, present, adopt, expected) in [
            ("new", None, false, &[owner, "all"][..]),
            (
                "there without owner",
                Some(&["a"][..]),
                false,
                &["a", "all"],
            ),
            ("adopted", Some(&["all"]), true, &["all", owner]),
            ("owned already", Some(&["x:old"]), true, &["x:old", "all"]),
        ] {
            let present = present.map(texts);
            let mut balancer_ref = BalancerRef::of(cluster.clone(), service.clone());
            balancer_ref.adopt = adopt.then(|| "7".to_owned());
            let others = ["all".to_owned()];
            let tags = tag.tags(present.as_deref(), &balancer_ref, Some("c-1"), &others);
            assert_eq!(tags, expected, "{case}");
        }
    }
}
