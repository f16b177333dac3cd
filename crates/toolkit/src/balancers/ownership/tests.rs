use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{ClusterIdentity, IpMode, OtherServices, ServiceSearch};

use super::*;

/// A balancer of a cloud in which names are not unique.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Balancer {
    id: u64,
    owner: Owner,
}

impl CloudBalancer for Balancer {
    const NOUN: &'static str = "balancer";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> &'static str {
        "web"
    }

    fn addresses(&self) -> Vec<IpAddr> {
        vec![[192, 0, 2, 7].into()]
    }

    fn service_uid(&self) -> Option<&str> {
        matches!(self.owner, Owner::Other(_)).then_some("u-db")
    }
}

/// Another Service of the cluster.
struct Other {
    service: ServiceRef,
    ingress: Vec<Ingress>,
}

impl ServiceSearch for Other {
    fn find(&self, fits: &dyn Fn(OtherService<'_>) -> bool) -> Option<ServiceRef> {
        let other = OtherService {
            service: &self.service,
            annotations: &BTreeMap::new(),
            ingress: &self.ingress,
        };
        fits(other).then(|| self.service.clone())
    }
}

/// What refers to a balancer where a Service of this UID publishes this address.
fn beside(uid: &str, last_byte: u8) -> BalancerRef {
    let ip = IpAddr::from([192, 0, 2, last_byte]);
    let mode = IpMode::Proxy;
    BalancerRef {
        others: OtherServices::new(Arc::new(Other {
            service: ServiceRef {
                namespace: "ns".to_owned(),
                name: "db".to_owned(),
                uid: uid.to_owned(),
            },
            ingress: vec![Ingress::Ip { ip, mode }],
        })),
        ..balancer_ref()
    }
}

fn ours(id: u64) -> Balancer {
    let owner = Owner::Us;
    Balancer { id, owner }
}

fn unlabelled(id: u64) -> Balancer {
    let owner = Owner::Unowned;
    Balancer { id, owner }
}

fn theirs(id: u64) -> Balancer {
    let owner = Owner::Other("ns/db".to_owned());
    Balancer { id, owner }
}

fn balancer_ref() -> BalancerRef {
    BalancerRef::of(
        ClusterIdentity {
            name: "c".to_owned(),
            uid: None,
            pod_cidrs: vec![],
        },
        ServiceRef {
            namespace: "ns".to_owned(),
            name: "web".to_owned(),
            uid: "u-1".to_owned(),
        },
    )
}

/// What becomes of balancers that have the name and not the owner label: which is ours, which is to be taken over,
/// or why none is.
fn by_name(found: Vec<Balancer>, namesakes: Namesakes) -> Result<(Vec<u64>, Option<u64>), String> {
    let candidates = Candidates {
        namesakes: found,
        ..Candidates::default()
    };
    let classified = candidates.classify(&balancer_ref(), namesakes, |balancer| {
        balancer.owner.clone()
    });
    let ids = |classified: Classified<Balancer>| {
        let ours = classified.ours.iter().map(|balancer| balancer.id).collect();
        (ours, classified.adoptable.map(|balancer| balancer.id))
    };
    classified
        .map(ids)
        .map_err(|error| format!("{}: {}", error.kind(), error.message()))
}

#[test]
fn a_namesake_is_in_the_way_unless_it_is_ours() {
    for (case, found, expected) in [
        ("none", vec![], Ok((vec![], None))),
        ("ours", vec![ours(7)], Ok((vec![7], None))),
        (
            "ours, behind others of that name",
            vec![unlabelled(5), theirs(6), ours(7)],
            Ok((vec![7], None)),
        ),
        (
            "another owner's",
            vec![theirs(6), unlabelled(5)],
            Err("not_ours: balancer 6 (\"web\") belongs to ns/db"),
        ),
        (
            "unowned",
            vec![unlabelled(5)],
            Err(
                "not_ours: balancer 5 is called \"web\" but does not carry the owner label of ns/web",
            ),
        ),
        (
            "two of ours",
            vec![ours(7), ours(8)],
            Err("invalid: balancers 7 and 8 all carry the owner label of ns/web"),
        ),
    ] {
        check(case, by_name(found, Namesakes::Refused), expected);
    }
}

#[test]
fn a_namesake_is_taken_over_on_request_if_there_is_only_one() {
    for (case, found, expected) in [
        ("none", vec![], Ok((vec![], None))),
        ("unowned", vec![unlabelled(5)], Ok((vec![], Some(5)))),
        ("another owner's", vec![theirs(6)], Ok((vec![], Some(6)))),
        (
            "several",
            vec![theirs(6), unlabelled(5)],
            Err("not_ours: balancers 6 and 5 all have the name that ns/web asks for"),
        ),
    ] {
        check(case, by_name(found, Namesakes::Adopted), expected);
    }
}

fn check(
    case: &str,
    classified: Result<(Vec<u64>, Option<u64>), String>,
    expected: Result<(Vec<u64>, Option<u64>), &str>,
) {
    match (classified, expected) {
        (Err(why), Err(beginning)) => assert!(why.starts_with(beginning), "{case}: {why}"),
        (classified, expected) => assert_eq!(classified, expected.map_err(str::to_owned), "{case}"),
    }
}

#[test]
fn what_another_service_has_is_adopted_neither_on_request_nor_by_its_name() {
    for (case, balancer, beside, may_be_adopted) in [
        (
            "no other Service has it",
            unlabelled(5),
            balancer_ref(),
            true,
        ),
        (
            "another Service with another address",
            unlabelled(5),
            beside("u-db", 8),
            true,
        ),
        (
            "a Service with its address",
            unlabelled(5),
            beside("u-db", 7),
            false,
        ),
        (
            "labels of a Service that is gone",
            theirs(5),
            beside("u-x", 8),
            true,
        ),
        (
            "labels of a Service that is there",
            theirs(5),
            beside("u-db", 8),
            false,
        ),
    ] {
        let candidates = Candidates {
            namesakes: vec![balancer.clone()],
            ..Candidates::default()
        };
        let owner_of = |balancer: &Balancer| balancer.owner.clone();
        let by_name = candidates.classify(&beside, Namesakes::Adopted, owner_of);
        check_adopted(case, by_name, may_be_adopted);
        if balancer.owner == Owner::Unowned {
            let candidates = Candidates {
                requested: Some(balancer),
                ..Candidates::default()
            };
            let adopt = Some("5".to_owned());
            let beside = BalancerRef { adopt, ..beside };
            let on_request = candidates.classify(&beside, Namesakes::Refused, owner_of);
            check_adopted(case, on_request, may_be_adopted);
        }
    }
}

fn check_adopted(case: &str, classified: Result<Classified<Balancer>, CloudError>, expected: bool) {
    match classified {
        Ok(classified) => assert_eq!(classified.adoptable.is_some(), expected, "{case}"),
        Err(error) => {
            assert!(!expected, "{case}: {error}");
            assert_eq!(error.kind(), ErrorKind::NotOurs, "{case}");
            let message = error.message();
            assert!(
                message.contains("belongs to Service ns/db"),
                "{case}: {message}"
            );
        }
    }
}
