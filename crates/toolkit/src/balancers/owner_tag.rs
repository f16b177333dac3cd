//! Owner labels for clouds whose tags have no values: one tag holds all of them.

use cloudkeel_api::BalancerRef;

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
