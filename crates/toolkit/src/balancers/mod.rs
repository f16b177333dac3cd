//! Load balancers: which Service they belong to, how they are found, and which listeners and targets they get.

mod extra_tags;
mod finder;
mod listeners;
mod owner_labels;
mod owner_tag;
mod owner_text;
mod ownership;
mod parts;
mod shared_list;
mod sharing;
mod tagged;
mod tags;
mod targets;

use cloudkeel_api::{
    AnnotationKey, BalancerRef, CloudError, ErrorKind, Failures, Ingress, IpMode, LoadBalancerSpec,
};

pub use self::extra_tags::ExtraTags;
pub use self::finder::BalancerFinder;
pub use self::listeners::{
    HasListenerKey, ListenerChange, ListenerDiff, ListenerKey, diff_listeners,
};
pub use self::owner_labels::{Labels, OwnerLabels, ServiceLabel};
pub use self::owner_tag::OwnerTag;
pub use self::owner_text::OwnerText;
pub use self::ownership::{Candidates, Classified, CloudBalancer, Namesakes, Owner};
pub use self::shared_list::{PendingLookups, SharedList};
pub use self::sharing::{
    SHARED_LABEL, SHARED_TAG, ShareableBalancer, Sharing, check_unchanged, labels_of_new,
    silent_spec,
};
pub use self::tagged::{TaggedBalancer, TaggedBalancers};
pub use self::tags::{TagApi, TagStep, TagSync};
pub use self::targets::{
    Capacity, DesiredTarget, DesiredTargets, TargetBatch, TargetChange, TargetDiff, address_of,
    instance_of, internal_ip,
};

/// Whether the Service itself points at a balancer: by an annotation with its ID, or by an address of its status.
///
/// For clouds whose owner tags carry no UID, such as OpenStack's names: there a name counts only with this.
pub fn is_referenced(
    balancer_ref: &BalancerRef,
    id_annotation: &str,
    id: &str,
    places: &[String],
) -> bool {
    let by_id = balancer_ref.annotations.get(id_annotation);
    let by_status = || {
        let mut ingress = balancer_ref.ingress.iter().map(Ingress::place);
        ingress.any(|place| places.contains(&place))
    };
    by_id.map_or_else(by_status, |annotated| annotated == id)
}

/// Where clients find a balancer: the hostname in place of addresses if there is one.
pub fn ingress(
    hostname: Option<&String>,
    addresses: impl IntoIterator<Item = std::net::IpAddr>,
    is_proxied: bool,
) -> Vec<Ingress> {
    if let Some(hostname) = hostname {
        return vec![Ingress::Hostname(hostname.clone())];
    }
    let mode = if is_proxied {
        IpMode::Proxy
    } else {
        IpMode::Vip
    };
    let addresses = addresses.into_iter();
    addresses.map(|ip| Ingress::Ip { ip, mode }).collect()
}

/// The addresses of a balancer that ends TLS or speaks HTTP itself: a Pod that goes past it would get another answer than
/// other clients. An address that the Service publishes already stays as it is, perhaps by another manager.
pub fn through_balancer(balancer_ref: &BalancerRef, mut ingress: Vec<Ingress>) -> Vec<Ingress> {
    for at in &mut ingress {
        let is_published = balancer_ref.ingress.contains(at);
        if let Ingress::Ip { mode, .. } = at
            && !is_published
        {
            *mode = IpMode::Proxy;
        }
    }
    ingress
}

/// A reference of a Service that cannot be resolved, for [`Report::unmet`](cloudkeel_api::Report::unmet): it keeps nothing else
/// back, unless the cloud refuses every call.
pub fn unresolved(error: CloudError) -> Result<Failures, CloudError> {
    match error.kind() {
        ErrorKind::Throttled { .. } | ErrorKind::Unauthenticated | ErrorKind::Cancelled => {
            Err(error)
        }
        ErrorKind::Invalid => Ok(Failures::invalid(error.message())),
        _ => Ok(Failures::from(&error)),
    }
}

/// Whether the cloud understood and refused, so that asking for something else makes sense.
pub fn is_refusal(error: &CloudError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Invalid
            | ErrorKind::NotFound
            | ErrorKind::LimitExceeded
            | ErrorKind::Denied
            | ErrorKind::Unsupported
    )
}

/// One answer per spec, also if the read that all of them share failed.
pub fn one_each<O>(
    specs: &[LoadBalancerSpec],
    observed: Result<Vec<Result<O, CloudError>>, CloudError>,
) -> Vec<Result<O, CloudError>> {
    observed.unwrap_or_else(|error| {
        let failed = specs.iter().map(|_| Err(error.clone_without_source()));
        failed.collect()
    })
}

/// The name that a Service's balancer has: the one that it asks for, else upstream's default.
pub fn balancer_name(spec: &LoadBalancerSpec) -> String {
    let given = spec.options.name.clone();
    given.unwrap_or_else(|| spec.balancer_ref.service.default_balancer_name())
}

/// The same where an annotation of the cloud's own names it.
pub fn named_balancer(spec: &LoadBalancerSpec, name: &AnnotationKey<String>) -> String {
    let own = spec.balancer_ref.annotations.get(name.name());
    let own = own.filter(|name| !name.is_empty());
    own.cloned().unwrap_or_else(|| balancer_name(spec))
}

#[cfg(test)]
mod tests {
    use crate::fixtures::cluster_and_service;

    use super::*;

    fn balancer_ref() -> BalancerRef {
        let (cluster, service) = cluster_and_service();
        BalancerRef::of(cluster, service)
    }

    #[test]
    fn an_unresolved_reference_keeps_the_rest_back_only_if_every_call_is_refused() {
        for (kind, keeps_back, refused) in [
            (ErrorKind::Throttled { retry_after: None }, true, false),
            (ErrorKind::Unauthenticated, true, false),
            (ErrorKind::Invalid, false, true),
            (ErrorKind::NotFound, false, true),
            (ErrorKind::Unavailable, false, false),
        ] {
            let error = || CloudError::new("find type", kind, "no such type");
            assert_eq!(is_refusal(&error()), refused, "{kind}");
            match unresolved(error()) {
                Ok(unmet) => assert_eq!((unmet.kind, keeps_back), (kind, false)),
                Err(error) => assert_eq!((error.kind(), keeps_back), (kind, true)),
            }
        }
    }

    #[test]
    fn a_service_points_at_a_balancer_by_id_or_by_its_status() {
        let at = |ip: [u8; 4]| ingress(None, [ip.into()], false);
        for (case, annotated, ingress, expected) in [
            ("neither", None, vec![], false),
            ("its ID", Some("7"), vec![], true),
            ("another ID", Some("8"), vec![], false),
            ("its address", None, at([192, 0, 2, 1]), true),
            ("another address", None, at([192, 0, 2, 9]), false),
            (
                "another ID wins over its address",
                Some("8"),
                at([192, 0, 2, 1]),
                false,
            ),
        ] {
            let mut balancer_ref = balancer_ref();
            balancer_ref.ingress = ingress;
            if let Some(id) = annotated {
                let annotations = &mut balancer_ref.annotations;
                annotations.insert("x/id".to_owned(), id.to_owned());
            }
            let places = ["192.0.2.1".to_owned()];
            assert_eq!(
                is_referenced(&balancer_ref, "x/id", "7", &places),
                expected,
                "{case}"
            );
        }
    }

    #[test]
    fn pods_go_through_a_new_balancer_that_changes_what_they_send() {
        let [one, other] = [[192, 0, 2, 1], [192, 0, 2, 2]].map(std::net::IpAddr::from);
        let mut balancer_ref = balancer_ref();
        balancer_ref.ingress = ingress(None, [one], false);
        let found = through_balancer(&balancer_ref, ingress(None, [one, other], false));
        let (vip, proxy) = (IpMode::Vip, IpMode::Proxy);
        let expected = [(one, vip), (other, proxy)].map(|(ip, mode)| Ingress::Ip { ip, mode });
        assert_eq!(found, expected, "what is published stays");
        balancer_ref.ingress.clone_from(&found);
        assert_eq!(
            through_balancer(&balancer_ref, ingress(None, [one, other], false)),
            found
        );
    }

    #[test]
    fn a_hostname_is_published_in_place_of_addresses() {
        let ip = std::net::IpAddr::from([192, 0, 2, 1]);
        let name = "x.example".to_owned();
        assert_eq!(
            ingress(Some(&name), [ip], false),
            [Ingress::Hostname(name.clone())]
        );
        let mode = IpMode::Proxy;
        assert_eq!(ingress(None, [ip], true), [Ingress::Ip { ip, mode }]);
    }
}
