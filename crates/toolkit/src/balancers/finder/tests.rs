use std::sync::Mutex;

use super::*;
use cloudkeel_api::{ClusterIdentity, ErrorKind};

/// A balancer and its two owner labels: of a Service, and of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Labelled {
    id: u64,
    name: &'static str,
    service: Option<&'static str>,
    cluster: Option<&'static str>,
}

impl CloudBalancer for Labelled {
    const NOUN: &'static str = "balancer";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> &str {
        self.name
    }
}

/// A cloud with these balancers, which writes down what it is asked.
struct Cloud {
    all: Vec<Labelled>,
    namesakes: Namesakes,
    lists_nothing: bool,
    asked: Mutex<Vec<String>>,
}

impl Cloud {
    fn with(all: &[Labelled]) -> Self {
        Self {
            all: all.to_vec(),
            namesakes: Namesakes::Refused,
            lists_nothing: false,
            asked: Mutex::default(),
        }
    }

    fn those(&self, question: String, fits: impl Fn(&Labelled) -> bool) -> Vec<Labelled> {
        self.asked.lock().unwrap().push(question);
        self.all.iter().filter(|b| fits(b)).cloned().collect()
    }
}

#[async_trait]
impl BalancerFinder for Cloud {
    type Balancer = Labelled;

    async fn labelled(&self, service: &ServiceRef) -> Result<Vec<Labelled>, CloudError> {
        let question = format!("labelled {}", service.uid);
        Ok(self.those(question, |b| {
            !self.lists_nothing && b.service == Some(service.uid.as_str())
        }))
    }

    fn written_id<'a>(&self, balancer_ref: &'a BalancerRef) -> Option<&'a str> {
        balancer_ref.annotations.get("id").map(String::as_str)
    }

    async fn with_id(&self, id: &str) -> Result<Labelled, CloudError> {
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

    async fn named(&self, name: &str) -> Result<Vec<Labelled>, CloudError> {
        Ok(self.those(format!("name {name}"), |b| b.name == name))
    }

    fn is_labelled(&self, balancer: &Labelled, service: &ServiceRef) -> bool {
        balancer.service == Some(service.uid.as_str())
    }

    fn owner(&self, balancer: &Labelled, balancer_ref: &BalancerRef) -> Owner {
        match (balancer.service, balancer.cluster) {
            (Some(uid), _) if uid != balancer_ref.service.uid => {
                Owner::Other(format!("Service {uid}"))
            }
            (_, Some(cluster)) if cluster != "c-1" => Owner::Other(format!("cluster {cluster}")),
            (Some(_), _) => Owner::Us,
            (None, _) => Owner::Unowned,
        }
    }

    fn namesakes(&self) -> Namesakes {
        self.namesakes
    }
}

fn balancer_ref(adopt: Option<&str>) -> BalancerRef {
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
    BalancerRef {
        adopt: adopt.map(str::to_owned),
        ..BalancerRef::of(cluster, service)
    }
}

const UNOWNED: Labelled = Labelled {
    id: 7,
    name: "web",
    service: None,
    cluster: None,
};
const OURS: Labelled = Labelled {
    service: Some("u-1"),
    ..UNOWNED
};
const THEIRS: Labelled = Labelled {
    service: Some("u-2"),
    ..UNOWNED
};
const COPY: Labelled = Labelled {
    cluster: Some("c-2"),
    ..OURS
};
const OTHER_CLUSTERS: Labelled = Labelled {
    cluster: Some("c-2"),
    ..UNOWNED
};
const SECOND: Labelled = Labelled { id: 8, ..OURS };

enum Expected {
    Nothing,
    Ours,
    Adoptable,
    Refused(ErrorKind, &'static str),
}
use Expected::{Adoptable, Nothing, Ours, Refused};

/// Looks for the balancer by look-ups and in a list of all, which must agree.
async fn check(case: &str, cloud: &Cloud, adopt: Option<&str>, expected: &Expected) {
    let balancer_ref = balancer_ref(adopt);
    let looked_up = cloud.find(&balancer_ref, "web").await;
    let listed = cloud.find_among(&cloud.all, &balancer_ref, "web");
    for (way, found) in [("looked up", looked_up), ("listed", listed)] {
        match (found, expected) {
            (Ok(found), Nothing) => assert_eq!(found, Classified::default(), "{case}, {way}"),
            (Ok(found), Ours) => {
                assert_eq!(
                    found,
                    Classified::ours(cloud.all[0].clone()),
                    "{case}, {way}"
                );
            }
            (Ok(found), Adoptable) => {
                let expected = Classified::adoptable(cloud.all[0].clone());
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
async fn the_owner_label_decides_and_a_name_proves_nothing() {
    let two = "balancers 7 and 8 all carry the owner label of ns/web: delete all but one";
    let not_ours = |why| Refused(ErrorKind::NotOurs, why);
    for (case, all, expected) in [
        ("nothing there", vec![], Nothing),
        ("ours", vec![OURS], Ours),
        ("a copy", vec![COPY], not_ours("belongs to cluster c-2")),
        ("two", vec![OURS, SECOND], Refused(ErrorKind::Invalid, two)),
        (
            "unowned of our name",
            vec![UNOWNED],
            not_ours("cloudkeel.dev/adopt: \"7\""),
        ),
        (
            "another Service's of our name",
            vec![THEIRS],
            not_ours("belongs to Service u-2"),
        ),
        (
            "unowned of another name",
            vec![Labelled {
                name: "db",
                ..UNOWNED
            }],
            Nothing,
        ),
    ] {
        check(case, &Cloud::with(&all), None, &expected).await;
    }
}

#[tokio::test]
async fn only_what_has_no_owner_is_adopted() {
    let not_ours = |why| Refused(ErrorKind::NotOurs, why);
    for (case, all, adopt, expected) in [
        ("unowned", vec![UNOWNED], "7", Adoptable),
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
            vec![UNOWNED],
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
    for namesake in [UNOWNED, THEIRS] {
        let cloud = Cloud {
            namesakes: Namesakes::Adopted,
            ..Cloud::with(&[namesake])
        };
        check("taken over", &cloud, None, &Adoptable).await;
    }
}

#[tokio::test]
async fn a_settled_service_costs_one_question_and_no_look_up_is_in_vain() {
    for (case, all, adopt, asked) in [
        ("settled", vec![OURS], None, &["labelled u-1"][..]),
        (
            "settled and adopted",
            vec![OURS],
            Some("7"),
            &["labelled u-1"],
        ),
        ("new", vec![], None, &["labelled u-1", "name web"]),
        (
            "adopting",
            vec![UNOWNED],
            Some("7"),
            &["labelled u-1", "id 7"],
        ),
    ] {
        let cloud = Cloud::with(&all);
        cloud.find(&balancer_ref(adopt), "web").await.unwrap();
        assert_eq!(*cloud.asked.lock().unwrap(), asked, "{case}");
    }
}

#[tokio::test]
async fn an_error_of_a_look_up_is_passed_on() {
    let error = Cloud::with(&[]).find(&balancer_ref(Some("8")), "web").await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn all_that_is_ours_goes_with_its_service_and_nothing_else() {
    let elsewhere = Labelled { id: 9, ..COPY };
    let cloud = Cloud::with(&[OURS, SECOND, elsewhere, THEIRS, UNOWNED]);
    let leaving = cloud
        .find_for_removal(&balancer_ref(Some("7")))
        .await
        .unwrap();
    assert_eq!(leaving.ours, [OURS, SECOND]);
    assert_eq!(leaving.adoptable, None);
    assert_eq!(*cloud.asked.lock().unwrap(), ["labelled u-1"]);
}

#[tokio::test]
async fn a_balancer_that_no_list_shows_is_looked_up_by_the_id_on_its_service() {
    let theirs = Labelled { id: 6, ..THEIRS };
    for (case, id, expected) in [
        ("its own", OURS.id(), Ok(vec![OURS])),
        ("another's", theirs.id(), Ok(Vec::new())),
        ("none there", "9".to_owned(), Ok(Vec::new())),
        ("no answer", "8".to_owned(), Err(ErrorKind::Unavailable)),
    ] {
        let mut cloud = Cloud::with(&[OURS, theirs.clone()]);
        cloud.lists_nothing = true;
        let mut balancer_ref = balancer_ref(None);
        balancer_ref.annotations.insert("id".to_owned(), id);
        let found = cloud.find_for_removal(&balancer_ref).await;
        let found = found.map(|found| found.ours).map_err(|error| error.kind());
        assert_eq!(found, expected, "{case}");
    }
}
