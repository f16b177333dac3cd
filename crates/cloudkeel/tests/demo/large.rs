//! The page of a large cluster: what is wrong comes first, and the rest is found.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_page::{BalancerRow, CloudRow, Leader, Level, NodeRow, PageData, Source, Summary};
use serde_json::json;

use crate::browser::Browser;
use crate::screenshots::Screenshots;

const NODES: usize = 2_000;
const BALANCERS: usize = 120;
const TIME: &str = "2026-01-02T03:04:05Z";

/// A cluster of which a few Nodes and Services are broken.
struct Large;

#[async_trait]
impl Source for Large {
    async fn data(&self) -> PageData {
        let mut data = PageData {
            title: "cloudkeel".to_owned(),
            time: TIME.to_owned(),
            leader: Leader {
                holder: Some("pod-a".to_owned()),
                is_shown: true,
                error: None,
            },
            nodes: (0..NODES).map(node).collect(),
            balancers: (0..BALANCERS).map(balancer).collect(),
            clouds: vec![CloudRow {
                name: "fsn".to_owned(),
                provider: "hcloud".to_owned(),
                state: "answers".to_owned(),
                level: Level::Good,
                ..CloudRow::default()
            }],
            ..PageData::default()
        };
        data.summary = Summary::of(&data);
        data
    }
}

fn node(number: usize) -> NodeRow {
    let (state, level, note) = match number % 500 {
        77 => ("NotReady", Level::Bad, None),
        133 => (
            "not initialised",
            Level::Warning,
            Some("no machine has this name".to_owned()),
        ),
        _ => ("Ready", Level::Good, None),
    };
    NodeRow {
        name: format!("pool-{}-worker-{number:04}", number % 7),
        state: state.to_owned(),
        level,
        cloud: "fsn".to_owned(),
        machine: format!("hcloud://{}", 4_000_000 + number),
        machine_state: "running".to_owned(),
        kind: "cx42 · fsn1-dc14".to_owned(),
        addresses: vec![format!("10.1.{}.{}", number / 250, number % 250 + 1)],
        note,
        created: Some("2025-12-30T03:04:05Z".to_owned()),
        ..NodeRow::default()
    }
}

fn balancer(number: usize) -> BalancerRow {
    let (state, level) = match number {
        88 => ("sync fails", Level::Bad),
        _ => ("in service", Level::Good),
    };
    BalancerRow {
        service: format!("team-{}/web-{number}", number % 9),
        state: state.to_owned(),
        level,
        addresses: vec![format!("192.0.2.{}", number + 1)],
        listeners: vec!["TCP 443 → 30443".to_owned()],
        ..BalancerRow::default()
    }
}

/// Where it is served.
async fn serve() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port on loopback");
    let address = listener.local_addr().expect("an address");
    let router = cloudkeel_page::router(Arc::new(Large), None);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/")
}

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test(flavor = "multi_thread")]
async fn of_two_thousand_nodes_the_broken_come_first_and_any_is_found() {
    let album = Screenshots::open();
    let page = serve().await;
    let browser = {
        let page = page.clone();
        let opening = tokio::task::spawn_blocking(move || Browser::open(&page, false, 1280, 1400));
        opening.await.expect("a browser")
    };
    browser.is_live().await;
    browser
        .shows(
            "#summary",
            "4 Nodes not ready, 1 Service failing, 4 Nodes waiting",
        )
        .await;
    browser.shows("#nodes-count", "2,000").await;
    browser.shows("#nodes-bad", "4 broken").await;
    browser.shows("#nodes-pager", "1 / 40").await;
    let rows = browser.run("return document.querySelectorAll('#nodes-rows tr').length");
    assert_eq!(rows, 50, "one page of them");
    let first = browser
        .shows("#nodes-rows tr:first-child", "worker-0077")
        .await;
    assert!(
        first.contains("NotReady") && first.contains("3d old"),
        "{first}"
    );
    browser
        .shows("#balancers-cards article:first-child", "team-7/web-88")
        .await;
    assert_eq!(browser.wider_than_screen(), json!([]));
    album.take(&browser, "page-large.png");

    browser.click("#nodes-pager [data-turn='1']").await;
    browser.shows("#nodes-pager", "2 / 40").await;
    let search = |text: &str| {
        let script = format!(
            "const search = document.getElementById('nodes-search'); search.value = {text:?};
             search.dispatchEvent(new Event('input'))"
        );
        browser.run(&script)
    };
    search("10.1.7.200");
    browser.shows("#nodes-count", "1 of 2,000").await;
    browser
        .shows("#nodes-rows tr:first-child", "worker-1949")
        .await;
    search("pool-3 waits-for-nothing");
    browser.loses("#nodes-rows tr").await;
    search("no machine has");
    browser.shows("#nodes-count", "4 of 2,000").await;

    let phone = tokio::task::spawn_blocking(move || Browser::open(&page, true, 390, 1200));
    let phone = phone.await.expect("a browser");
    phone.shows("#nodes-count", "2,000").await;
    assert_eq!(phone.wider_than_screen(), json!([]));
    album.take(&phone, "page-large-phone.png");
}
