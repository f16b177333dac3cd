use std::sync::Mutex;

use super::*;
use crate::{ClusterIdentity, ErrorKind};

/// A balancer and its two marks: of a Service, and of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Marked {
    id: u64,
    name: &'static str,
    service: Option<&'static str>,
    cluster: Option<&'static str>,
}

impl Claimable for Marked {
    const THING: &'static str = "balancer";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> &str {
        self.name
    }
}

/// A cloud with these balancers, which writes down what it is asked.
struct Cloud {
    all: Vec<Marked>,
    namesakes: Namesakes,
    asked: Mutex<Vec<String>>,
}

impl Cloud {
    fn with(all: &[Marked]) -> Self {
        Self {
            all: all.to_vec(),
            namesakes: Namesakes::InTheWay,
            asked: Mutex::default(),
        }
    }

    fn those(&self, question: String, fits: impl Fn(&Marked) -> bool) -> Vec<Marked> {
        self.asked.lock().unwrap().push(question);
        self.all.iter().filter(|b| fits(b)).cloned().collect()
    }
}

#[async_trait]
impl BalancerFinder for Cloud {
    type Balancer = Marked;

    async fn marked(&self, service: &ServiceRef) -> Result<Vec<Marked>, CloudError> {
        let question = format!("marked {}", service.uid);
        Ok(self.those(question, |b| b.service == Some(service.uid.as_str())))
    }

    async fn with_id(&self, id: &str) -> Result<Marked, CloudError> {
        let mut found = self.those(format!("id {id}"), |b| b.id() == id);
        found.pop().ok_or_else(|| {
            let kind = if id == "9" {
                ErrorKind::NotFound
            } else {
                ErrorKind::Unavailable
            };
            CloudError::new("get balancer", kind, "nothing")
        })
    }

    async fn named(&self, name: &str) -> Result<Vec<Marked>, CloudError> {
        Ok(self.those(format!("name {name}"), |b| b.name == name))
    }

    fn is_marked(&self, balancer: &Marked, service: &ServiceRef) -> bool {
        balancer.service == Some(service.uid.as_str())
    }

    fn owner(&self, balancer: &Marked, claim: &Claim) -> Owner {
        match (balancer.service, balancer.cluster) {
            (Some(uid), _) if uid != claim.service.uid => Owner::Other(format!("Service {uid}")),
            (_, Some(cluster)) if cluster != "c-1" => Owner::Other(format!("cluster {cluster}")),
            (Some(_), _) => Owner::Us,
            (None, _) => Owner::Nobody,
        }
    }

    fn namesakes(&self) -> Namesakes {
        self.namesakes
    }
}

fn claim(adopt: Option<&str>) -> Claim {
    let cluster = ClusterIdentity {
        name: "c".into(),
        uid: Some("c-1".into()),
        pod_cidrs: vec![],
    };
    let service = ServiceRef {
        namespace: "ns".into(),
        name: "web".into(),
        uid: "u-1".into(),
    };
    Claim {
        adopt: adopt.map(str::to_owned),
        ..Claim::of(cluster, service)
    }
}

const NOBODYS: Marked = Marked {
    id: 7,
    name: "web",
    service: None,
    cluster: None,
};
const OURS: Marked = Marked {
    service: Some("u-1"),
    ..NOBODYS
};
const THEIRS: Marked = Marked {
    service: Some("u-2"),
    ..NOBODYS
};
const COPY: Marked = Marked {
    cluster: Some("c-2"),
    ..OURS
};
const OTHER_CLUSTERS: Marked = Marked {
    cluster: Some("c-2"),
    ..NOBODYS
};
const SECOND: Marked = Marked { id: 8, ..OURS };

enum Expected {
    Nothing,
    Ours,
    Adoptable,
    Refused(ErrorKind, &'static str),
}
use Expected::{Adoptable, Nothing, Ours, Refused};

/// Looks for the balancer by look-ups and in a list of all, which must agree.
async fn check(case: &str, cloud: &Cloud, adopt: Option<&str>, expected: &Expected) {
    let claim = claim(adopt);
    let looked_up = cloud.find(&claim, "web").await;
    let listed = cloud.find_among(&cloud.all, &claim, "web");
    for (way, found) in [("looked up", looked_up), ("listed", listed)] {
        match (found, expected) {
            (Ok(found), Nothing) => assert_eq!(found, Judged::default(), "{case}, {way}"),
            (Ok(found), Ours) => {
                assert_eq!(found, Judged::ours(cloud.all[0].clone()), "{case}, {way}");
            }
            (Ok(found), Adoptable) => {
                let expected = Judged::adoptable(cloud.all[0].clone());
                assert_eq!(found, expected, "{case}, {way}");
            }
            (Err(error), Refused(kind, why)) => {
                assert_eq!(error.kind(), *kind, "{case}, {way}: {error}");
                assert!(error.message().contains(why), "{case}, {way}: {error}");
            }
            (found, _) => panic!("{case}, {way}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn the_mark_decides_and_a_name_proves_nothing() {
    let two = "balancers 7 and 8 all carry the mark of ns/web: delete all but one";
    let not_ours = |why| Refused(ErrorKind::NotOurs, why);
    for (case, all, expected) in [
        ("nothing there", vec![], Nothing),
        ("ours", vec![OURS], Ours),
        ("a copy", vec![COPY], not_ours("belongs to cluster c-2")),
        ("two", vec![OURS, SECOND], Refused(ErrorKind::Invalid, two)),
        (
            "nobody's of our name",
            vec![NOBODYS],
            not_ours("cloudkeel.dev/adopt: \"7\""),
        ),
        (
            "another Service's of our name",
            vec![THEIRS],
            not_ours("belongs to Service u-2"),
        ),
        (
            "nobody's of another name",
            vec![Marked {
                name: "db",
                ..NOBODYS
            }],
            Nothing,
        ),
    ] {
        check(case, &Cloud::with(&all), None, &expected).await;
    }
}

#[tokio::test]
async fn only_what_is_nobodys_is_adopted() {
    let not_ours = |why| Refused(ErrorKind::NotOurs, why);
    for (case, all, adopt, expected) in [
        ("nobody's", vec![NOBODYS], "7", Adoptable),
        ("ours after all", vec![OURS], "7", Ours),
        (
            "another Service's",
            vec![THEIRS],
            "7",
            not_ours("belongs to Service u-2"),
        ),
        (
            "another cluster's",
            vec![OTHER_CLUSTERS],
            "7",
            not_ours("belongs to cluster c-2"),
        ),
        (
            "not there",
            vec![NOBODYS],
            "9",
            Refused(ErrorKind::Invalid, "there is no balancer \"9\" to adopt"),
        ),
        (
            "another than it has",
            vec![OURS],
            "9",
            Refused(ErrorKind::Invalid, "has balancer 7 already"),
        ),
    ] {
        check(case, &Cloud::with(&all), Some(adopt), &expected).await;
    }
}

#[tokio::test]
async fn a_setting_may_say_that_a_name_is_enough() {
    for namesake in [NOBODYS, THEIRS] {
        let cloud = Cloud {
            namesakes: Namesakes::TakenOver,
            ..Cloud::with(&[namesake])
        };
        check("taken over", &cloud, None, &Adoptable).await;
    }
}

#[tokio::test]
async fn a_settled_service_costs_one_question_and_nobody_is_asked_in_vain() {
    for (case, all, adopt, asked) in [
        ("settled", vec![OURS], None, &["marked u-1"][..]),
        (
            "settled and adopted",
            vec![OURS],
            Some("7"),
            &["marked u-1"],
        ),
        ("new", vec![], None, &["marked u-1", "name web"]),
        (
            "adopting",
            vec![NOBODYS],
            Some("7"),
            &["marked u-1", "id 7"],
        ),
    ] {
        let cloud = Cloud::with(&all);
        cloud.find(&claim(adopt), "web").await.unwrap();
        assert_eq!(*cloud.asked.lock().unwrap(), asked, "{case}");
    }
}

#[tokio::test]
async fn trouble_while_looking_is_no_judgement() {
    let error = Cloud::with(&[]).find(&claim(Some("8")), "web").await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn all_that_is_ours_goes_with_its_service_and_nothing_else() {
    let elsewhere = Marked { id: 9, ..COPY };
    let cloud = Cloud::with(&[OURS, SECOND, elsewhere, THEIRS, NOBODYS]);
    let going = cloud.find_going(&claim(Some("7"))).await.unwrap();
    assert_eq!(going.ours, [OURS, SECOND]);
    assert_eq!(going.adoptable, None);
    assert_eq!(*cloud.asked.lock().unwrap(), ["marked u-1"]);
}
