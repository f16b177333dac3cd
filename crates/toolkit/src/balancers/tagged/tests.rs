use std::net::IpAddr;

use cloudkeel_api::{Ingress, IpMode};

use crate::fixtures::cluster_and_service;
use cloudkeel_http::testing::{Reply, Script};
use cloudkeel_http::{Client, CodeTable};
use serde_json::{Value, json};

use super::*;
use crate::Paging;

#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
struct Balancer {
    id: String,
    name: String,
    tags: Vec<String>,
}

crate::resources! {
    Balancer, id: String = "balancer", "balancers";
}

impl CloudBalancer for Balancer {
    const DISOWNED_BY: Option<&'static str> = Some("x/disown");

    fn id(&self) -> String {
        self.id.clone()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn addresses(&self) -> Vec<IpAddr> {
        vec![[192, 0, 2, 1].into()]
    }
}

impl TaggedBalancer for Balancer {
    fn tags(&self) -> &[String] {
        &self.tags
    }
}

fn balancers() -> TaggedBalancers<Balancer> {
    TaggedBalancers::new(OwnerTag::new("x:"), "x/id", Some("c-1".to_owned()))
}

fn balancer_ref(id: Option<&str>) -> BalancerRef {
    let (cluster, service) = cluster_and_service();
    let mut balancer_ref = BalancerRef::of(cluster, service);
    let id = id.map(|id| ("x/id".to_owned(), id.to_owned()));
    balancer_ref.annotations.extend(id);
    balancer_ref
}

fn tagged(id: &str, tags: &[&str]) -> Value {
    json!({"id": id, "name": format!("lb-{id}"), "tags": tags})
}

fn parsed(value: &Value) -> Balancer {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn the_tag_decides_and_without_one_the_service_that_points_at_it() {
    let ip = IpAddr::from([192, 0, 2, 1]);
    let mode = IpMode::Vip;
    for (case, tags, id, has_its_address, expected) in [
        (
            "ours by its tag",
            &["x:u-1:c-1:ns:web"][..],
            None,
            false,
            Some(true),
        ),
        (
            "another Service's",
            &["x:u-2:c-1:ns:db"],
            Some("7"),
            true,
            None,
        ),
        ("no tag, and its ID", &[], Some("7"), false, Some(true)),
        ("no tag, and its address", &["a"], None, true, Some(true)),
        (
            "no tag, and nothing points at it",
            &[],
            None,
            false,
            Some(false),
        ),
    ] {
        let mut balancer_ref = balancer_ref(id);
        if has_its_address {
            balancer_ref.ingress = vec![Ingress::Ip { ip, mode }];
        }
        let owner = balancers().owner(&parsed(&tagged("7", tags)), &balancer_ref);
        let found = match owner {
            Owner::Us => Some(true),
            Owner::Unowned => Some(false),
            Owner::Other(_) => None,
        };
        assert_eq!(found, expected, "{case}");
    }
}

#[tokio::test]
async fn a_balancer_is_read_by_its_id_and_all_are_listed_if_that_is_not_ours() {
    let ours = tagged("7", &["x:u-1:c-1:ns:web"]);
    let theirs = tagged("8", &["x:u-2:c-1:ns:db"]);
    let one = |it: &Value| Reply::json(200, &json!({"balancer": it}));
    let gone = || Reply::json(404, &json!({"code": "not_found", "message": "no"}));
    let all = || Reply::json(200, &json!({"balancers": [ours, theirs]}));
    for (case, id, replies, seen) in [
        ("its ID", Some("7"), vec![one(&ours)], 1),
        ("no ID", None, vec![all()], 2),
        ("one that is gone", Some("9"), vec![gone(), all()], 2),
        ("another Service's", Some("8"), vec![one(&theirs), all()], 2),
    ] {
        let refusals = CodeTable::new("/code", "/message").not_found("not_found");
        let client = Client::builder("https://x")
            .transport(Script::new(replies))
            .error_map(refusals)
            .build();
        let paging = Paging {
            next: "/next",
            total: "/total",
        };
        let api = RestApi::new(client.unwrap(), "", 50, paging);
        let (balancers, balancer_ref) = (balancers(), balancer_ref(id));
        let visible = balancers.visible(&api, &balancer_ref).await.unwrap();
        assert_eq!(visible.len(), seen, "{case}");
        let released = DesiredState::Released(&balancer_ref);
        let found = balancers.find_among(&visible, released, "").unwrap();
        assert_eq!(found.ours, [parsed(&ours)], "{case}");
    }
}
