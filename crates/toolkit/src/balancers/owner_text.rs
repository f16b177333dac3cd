//! Owner labels for resources that have a description and nothing else.
//!
//! Go CCMs describe what they make for a Service by names: of the Service, and of the cluster. Many clusters are called
//! `kubernetes`, so that proves nothing. Behind such a description stand the UIDs of both here.

use cloudkeel_api::{BalancerRef, ClusterIdentity, OwnedResource, ResourceKind, ServiceRef};

/// What stands before the UIDs, and between them.
const OWNER: [&str; 2] = [" (Service UID ", ", cluster UID "];

/// How a kind of resource is described: `<before><namespace>/<name><between><name of the cluster>`.
///
/// ```
/// # use cloudkeel_toolkit::OwnerText;
/// const TEXT: OwnerText = OwnerText { before: "address of ", between: " in cluster ", longest: 255 };
/// let described = "address of default/web in cluster kubernetes (Service UID u-1, cluster UID c-1)";
/// assert_eq!(TEXT.without_owner(described), Some("address of default/web in cluster kubernetes"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OwnerText {
    /// What it begins with.
    pub before: &'static str,
    /// What stands between the names.
    pub between: &'static str,
    /// The most bytes that the cloud takes. A description that would be longer gets no UIDs.
    pub longest: usize,
}

impl OwnerText {
    /// The description as the Go CCM writes it.
    pub fn plain(&self, balancer_ref: &BalancerRef) -> String {
        let (service, cluster) = (&balancer_ref.service, &balancer_ref.cluster.name);
        format!("{}{service}{}{cluster}", self.before, self.between)
    }

    /// The description with its owner, if the cluster's UID is known.
    pub fn owned(&self, balancer_ref: &BalancerRef, cluster: Option<&str>) -> String {
        let plain = self.plain(balancer_ref);
        let ([before, between], uid) = (OWNER, &balancer_ref.service.uid);
        let owned = cluster.map(|cluster| format!("{plain}{before}{uid}{between}{cluster})"));
        let owned = owned.filter(|it| it.len() <= self.longest);
        owned.unwrap_or(plain)
    }

    /// The description without its owner, if it has one.
    pub fn without_owner<'a>(&self, description: &'a str) -> Option<&'a str> {
        split(description).map(|(plain, ..)| plain)
    }

    /// The Service that a resource was made for. Its UID is empty where only the names say so, which proves nothing: another
    /// cluster may be called as this one. `None` if it is another cluster's, or was not made for a Service.
    pub fn service(&self, description: &str, cluster: &ClusterIdentity) -> Option<ServiceRef> {
        let owner = split(description);
        let plain = owner.map_or(description, |(plain, ..)| plain);
        let names = plain.strip_prefix(self.before)?;
        let (service, cluster_name) = names.split_once(self.between)?;
        let (namespace, name) = service.split_once('/')?;
        let uid = match owner {
            Some((_, uid, of)) => (cluster.uid.as_deref() == Some(of)).then_some(uid),
            None => (cluster_name == cluster.name).then_some(""),
        };
        Some(ServiceRef {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid?.to_owned(),
        })
    }

    /// A resource with its Service, for finding left-overs.
    pub fn described(
        &self,
        kind: ResourceKind,
        (id, name): (String, String),
        description: &str,
        cluster: &ClusterIdentity,
    ) -> Option<OwnedResource> {
        let service = Some(self.service(description, cluster)?);
        Some(OwnedResource {
            kind,
            id,
            name,
            service,
        })
    }
}

/// A description, and the UIDs of the Service and of the cluster behind it.
fn split(description: &str) -> Option<(&str, &str, &str)> {
    let [before, between] = OWNER;
    let (plain, owner) = description.rsplit_once(before)?;
    let (service, cluster) = owner.strip_suffix(')')?.split_once(between)?;
    let is_given = !service.is_empty() && !cluster.is_empty();
    is_given.then_some((plain, service, cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: OwnerText = OwnerText {
        before: "address of ",
        between: " in cluster ",
        longest: 90,
    };

    fn cluster(name: &str, uid: Option<&str>) -> ClusterIdentity {
        ClusterIdentity {
            name: name.to_owned(),
            uid: uid.map(str::to_owned),
            pod_cidrs: vec![],
        }
    }

    fn balancer_ref(name: &str) -> BalancerRef {
        let service = ServiceRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: "u-1".to_owned(),
        };
        BalancerRef::of(cluster("kubernetes", Some("c-1")), service)
    }

    #[test]
    fn the_uids_come_and_go_behind_what_the_go_ccm_writes() {
        let web = balancer_ref("web");
        let plain = TEXT.plain(&web);
        assert_eq!(plain, "address of default/web in cluster kubernetes");
        let owned = TEXT.owned(&web, Some("c-1"));
        assert_eq!(owned, format!("{plain} (Service UID u-1, cluster UID c-1)"));
        assert_eq!(TEXT.without_owner(&owned), Some(plain.as_str()));
        assert_eq!(TEXT.without_owner(&plain), None);
        assert_eq!(TEXT.owned(&web, None), plain, "the cluster is not known");
        let long = balancer_ref("a-service-with-a-longer-name");
        assert_eq!(TEXT.owned(&long, Some("c-1")), TEXT.plain(&long));
    }

    #[test]
    fn only_the_uid_of_the_cluster_proves_whose_it_is() {
        let service = |uid: &str| ServiceRef {
            uid: uid.to_owned(),
            ..balancer_ref("web").service
        };
        let (us, unproven) = (Some(service("u-1")), Some(service("")));
        let plain = "address of default/web in cluster kubernetes";
        for (case, description, uid, expected) in [
            (
                "ours",
                TEXT.owned(&balancer_ref("web"), Some("c-1")),
                Some("c-1"),
                us,
            ),
            (
                "another cluster's of our name",
                format!("{plain} (Service UID u-1, cluster UID c-2)"),
                Some("c-1"),
                None,
            ),
            (
                "our UID is not known",
                format!("{plain} (Service UID u-1, cluster UID c-1)"),
                None,
                None,
            ),
            (
                "the Go CCM's",
                plain.to_owned(),
                Some("c-1"),
                unproven.clone(),
            ),
            (
                "a UID is missing",
                format!("{plain} (Service UID , cluster UID c-1)"),
                Some("c-1"),
                None,
            ),
            (
                "the Go CCM's of another cluster",
                "address of default/web in cluster prod".to_owned(),
                Some("c-1"),
                None,
            ),
            (
                "no Service",
                "address of web in cluster kubernetes".to_owned(),
                Some("c-1"),
                None,
            ),
            ("the user's", "mine".to_owned(), Some("c-1"), None),
        ] {
            let found = TEXT.service(&description, &cluster("kubernetes", uid));
            assert_eq!(found, expected, "{case}");
            let names = ("7".to_owned(), "n".to_owned());
            let (kind, cluster) = (ResourceKind::Address, cluster("kubernetes", uid));
            let resource = TEXT.described(kind, names, &description, &cluster);
            assert_eq!(resource.map(|it| it.service), expected.map(Some), "{case}");
        }
    }
}
