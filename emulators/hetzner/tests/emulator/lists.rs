//! Lists: pages, filters, order.

use cloudkeel_emulator_hetzner::{HetznerCloud, ServerSpec, ServerStatus, Settings};
use serde_json::{Value, json};

use crate::support::{Rest, lab};

#[tokio::test(start_paused = true)]
async fn a_list_comes_in_pages() {
    let (cloud, rest) = lab(120);
    let all: Vec<u64> = cloud.servers().iter().map(|server| server.id).collect();
    for (query, shown, pagination) in [
        (
            "",
            &all[..25],
            [
                json!(1),
                json!(25),
                Value::Null,
                json!(2),
                json!(5),
                json!(120),
            ],
        ),
        (
            "?page=3&per_page=50",
            &all[100..],
            [
                json!(3),
                json!(50),
                json!(2),
                Value::Null,
                json!(3),
                json!(120),
            ],
        ),
        (
            "?per_page=100",
            &all[..50],
            [
                json!(1),
                json!(50),
                Value::Null,
                json!(2),
                json!(3),
                json!(120),
            ],
        ),
        (
            "?page=9&per_page=50",
            &[],
            [
                json!(9),
                json!(50),
                json!(8),
                Value::Null,
                json!(3),
                json!(120),
            ],
        ),
    ] {
        let answer = rest.get(&format!("/v1/servers{query}")).await;
        assert_eq!(answer.ids("servers"), shown, "{query}");
        let pages = &answer.body["meta"]["pagination"];
        let keys = [
            "page",
            "per_page",
            "previous_page",
            "next_page",
            "last_page",
            "total_entries",
        ];
        assert_eq!(keys.map(|key| pages[key].clone()), pagination, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_has_one_page() {
    let (_, rest) = lab(0);
    let answer = rest.get("/v1/load_balancers?page=1&per_page=50").await;
    assert_eq!(answer.body["load_balancers"], json!([]));
    let pages = &answer.body["meta"]["pagination"];
    assert_eq!(
        (&pages["last_page"], &pages["next_page"]),
        (&json!(1), &Value::Null)
    );
    assert_eq!(pages["total_entries"], json!(0));
}

#[tokio::test(start_paused = true)]
async fn a_query_that_makes_no_sense_names_its_field() {
    let (_, rest) = lab(0);
    for (query, field) in [
        ("page=0", "page"),
        ("page=x", "page"),
        ("per_page=-1", "per_page"),
        ("sort=colour", "sort"),
        ("sort=id:up", "sort"),
        ("label_selector=a%20b", "label_selector"),
    ] {
        let answer = rest.get(&format!("/v1/servers?{query}")).await;
        assert_eq!(answer.said(), (422, "invalid_input"), "{query}");
        assert_eq!(answer.field(), field, "{query}");
    }
}

fn sorted_lab() -> (HetznerCloud, Rest) {
    let cloud = HetznerCloud::new(Settings::default());
    for (name, env) in [("b", "prod"), ("a", "test"), ("c", "prod")] {
        cloud
            .add_server(ServerSpec::named(name).labelled("env", env))
            .unwrap();
    }
    let rest = Rest::of(&cloud);
    (cloud, rest)
}

async fn names(rest: &Rest, query: &str) -> Vec<String> {
    let answer = rest.get(&format!("/v1/servers?{query}")).await;
    let servers = answer.body["servers"].as_array().unwrap().clone();
    let names = servers
        .iter()
        .map(|server| server["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_filtered_and_sorted() {
    let (cloud, rest) = sorted_lab();
    cloud
        .set_status(cloud.servers()[0].id, ServerStatus::Off)
        .unwrap();
    for (query, expected) in [
        ("", vec!["b", "a", "c"]),
        ("name=a", vec!["a"]),
        ("name=A", vec![]),
        ("status=off", vec!["b"]),
        ("status=off&status=running", vec!["b", "a", "c"]),
        ("label_selector=env%3Dprod", vec!["b", "c"]),
        ("label_selector=env+in+(prod,test)", vec!["b", "a", "c"]),
        ("label_selector=env%21%3Dprod", vec!["a"]),
        ("label_selector=!env", vec![]),
        ("label_selector=env=prod&name=c", vec!["c"]),
        ("sort=name", vec!["a", "b", "c"]),
        ("sort=name:desc", vec!["c", "b", "a"]),
        ("sort=id:desc", vec!["c", "a", "b"]),
        ("sort=status&sort=name:desc", vec!["b", "c", "a"]),
        ("unknown=ignored", vec!["b", "a", "c"]),
    ] {
        assert_eq!(names(&rest, query).await, expected, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_catalogue_is_there_by_list_name_and_id() {
    let (_, rest) = lab(0);
    for (list, one, name, id, count) in [
        ("locations", "location", "fsn1", 1, 6),
        ("load_balancer_types", "load_balancer_type", "lb11", 1, 3),
    ] {
        let all = rest.get(&format!("/v1/{list}?")).await;
        assert_eq!(
            all.body["meta"]["pagination"]["total_entries"], count,
            "{list}"
        );
        let named = rest.get(&format!("/v1/{list}?name={name}")).await;
        assert_eq!(named.ids(list), [id], "{list}");
        let single = rest.get(&format!("/v1/{list}/{id}")).await;
        assert_eq!(single.body[one]["name"], name, "{list}");
    }
    let location = rest.get("/v1/locations/4").await;
    assert_eq!(location.body["location"]["network_zone"], "us-east");
    let lb11 = rest.get("/v1/load_balancer_types/1").await;
    assert_eq!(lb11.body["load_balancer_type"]["max_targets"], 25);
}
