//! Lists: selectors, pages, versions.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn lists_agree() {
    agree(
        "lists",
        cases![
            an_empty_list,
            label_selectors,
            field_selectors,
            selectors_that_cannot_be_read,
            pages_show_one_moment,
            a_page_of_a_selection,
            tokens_that_are_none,
            an_exact_version,
        ],
    )
    .await;
}

async fn add(b: &Bench, name: &str, labels: Value) -> Value {
    b.post(
        &b.here("secrets"),
        json!({"metadata": {"name": name, "labels": labels}}),
    )
    .await
}

async fn an_empty_list(b: &Bench) {
    b.get(&b.here("secrets")).await;
    b.get(&b.here_in("coordination.k8s.io", "leases")).await;
}

async fn label_selectors(b: &Bench) {
    add(b, "a", json!({"x": "1", "y": ""})).await;
    add(b, "b", json!({"x": "2"})).await;
    add(b, "c", json!({})).await;
    for selector in [
        "x",
        "!x",
        "x%3D1",
        "x!%3D1",
        "x%20in%20(1,2)",
        "x%20notin%20(1)",
        "x%3D1,y",
        "y%3D",
        "x%3D1,!y",
    ] {
        b.get(&b.here(&format!("secrets?labelSelector={selector}")))
            .await;
    }
}

async fn field_selectors(b: &Bench) {
    add(b, "a", json!({})).await;
    add(b, "b", json!({})).await;
    b.get(&b.here("secrets?fieldSelector=metadata.name%3Da"))
        .await;
    b.get(&b.here("secrets?fieldSelector=metadata.name!%3Da"))
        .await;
    b.get(&b.here("secrets?fieldSelector=type%3DOpaque,metadata.name%3Db"))
        .await;
    b.post(
        &b.here("services"),
        json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
    )
    .await;
    b.get(&b.here("services?fieldSelector=spec.type%3DLoadBalancer"))
        .await;
    b.get(&b.here("services?fieldSelector=spec.type%3DClusterIP"))
        .await;
}

async fn selectors_that_cannot_be_read(b: &Bench) {
    for query in [
        "fieldSelector=spec.what%3Da",
        "fieldSelector=nonsense",
        "labelSelector=a%20in%20b",
        "labelSelector=a%3Db%3Dc",
    ] {
        b.get(&b.here(&format!("secrets?{query}"))).await;
    }
}

fn token(list: &Value) -> String {
    list["metadata"]["continue"]
        .as_str()
        .expect("a token")
        .to_owned()
}

async fn pages_show_one_moment(b: &Bench) {
    for name in ["a", "b", "c", "d", "e"] {
        add(b, name, json!({})).await;
    }
    let first = b.get(&b.here("secrets?limit=2")).await;
    b.delete(&b.here("secrets/d"), json!({})).await;
    add(b, "ca", json!({})).await;
    b.merge(
        &b.here("secrets/c"),
        json!({"metadata": {"labels": {"late": "1"}}}),
    )
    .await;
    let second = b
        .unnoted_get(&b.here(&format!("secrets?limit=2&continue={}", token(&first))))
        .await;
    b.note("second page".to_owned(), second.clone());
    let third = b
        .unnoted_get(&b.here(&format!("secrets?limit=2&continue={}", token(&second))))
        .await;
    b.note("third page".to_owned(), third);
    b.get(&b.here("secrets")).await;
}

async fn a_page_of_a_selection(b: &Bench) {
    for name in ["a", "b", "c"] {
        add(b, name, json!({"x": "1"})).await;
    }
    b.get(&b.here("secrets?limit=1&labelSelector=x")).await;
    b.get(&b.here("secrets?limit=3")).await;
}

async fn tokens_that_are_none(b: &Bench) {
    b.get(&b.here("secrets?limit=2&continue=nonsense")).await;
}

async fn an_exact_version(b: &Bench) {
    let first = add(b, "a", json!({})).await;
    add(b, "b", json!({})).await;
    let version = first["metadata"]["resourceVersion"]
        .as_str()
        .expect("a version");
    let path = b.here(&format!(
        "secrets?resourceVersion={version}&resourceVersionMatch=Exact"
    ));
    let then = b.unnoted_get(&path).await;
    b.note("the list as it was".to_owned(), then);
    let path = b.here(&format!(
        "secrets?resourceVersion={version}&resourceVersionMatch=NotOlderThan"
    ));
    let now = b.unnoted_get(&path).await;
    b.note("the list as it is".to_owned(), now["items"].clone());
}
