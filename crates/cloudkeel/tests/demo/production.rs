//! The page that a manager itself serves with `--page`, in a browser that has a token.

use cloudkeel_testkit::cluster::eventually;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::cluster::Cluster;
use crate::process::{DEADLINE, Demo};
use crate::screenshots::Screenshots;

/// The page of the manager that leads, and a token that opens it.
async fn page_of_leader(demo: &Demo) -> (String, String) {
    let (leads, _, token) = pages(demo).await;
    (leads, token)
}

/// The page of the manager that leads, that of the other, and a token that opens both.
async fn pages(demo: &Demo) -> (String, String, String) {
    let kubeconfig = std::fs::read_to_string(demo.text("kubeconfig")).expect("a kubeconfig");
    let kubeconfig: Value = serde_saphyr::from_str(&kubeconfig).expect("YAML");
    let token = kubeconfig["users"][0]["user"]["token"].as_str();
    let token = token.expect("a token").to_owned();
    let managers = demo.started["managers"].as_array().expect("managers");
    let pages: Vec<_> = managers
        .iter()
        .filter_map(|manager| manager["page"].as_str())
        .collect();
    let leads = eventually("a page that says that its manager leads", DEADLINE, || {
        let mut leads = None;
        for page in &pages {
            let picture = picture(page, &token);
            if picture.is_some_and(|picture| picture["managers"][0]["state"] == "leads") {
                leads = Some((*page).to_owned());
            }
        }
        async { leads }
    });
    let leads = leads.await;
    let other = pages.iter().find(|page| **page != leads);
    let other = (*other.expect("another manager")).to_owned();
    (leads, other, token)
}

fn picture(page: &str, token: &str) -> Option<Value> {
    let output = std::process::Command::new("curl")
        .args(["--silent", "--insecure", "--max-time", "60"])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .arg(format!("{page}picture"))
        .output();
    serde_json::from_slice(&output.expect("curl runs").stdout).ok()
}

/// What a manager answers at `/status`.
fn status(page: &str, token: &str) -> Value {
    let url = page.replace("/page/", "/status");
    let output = std::process::Command::new("curl")
        .args(["--silent", "--insecure", "--max-time", "60"])
        .args(["--header", &format!("Authorization: Bearer {token}"), &url])
        .output();
    serde_json::from_slice(&output.expect("curl runs").stdout).expect("JSON")
}

/// What a Node is to each balancer of a `/status`.
fn uses_of(status: &Value, node: &str) -> Vec<String> {
    let balancers = status["balancers"].as_array().expect("balancers").iter();
    let targets = balancers.flat_map(|it| it["targets"].as_array().expect("targets"));
    let its = targets.filter(|target| target["node"] == node);
    its.filter_map(|target| target["use"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn status_begins_with_what_is_wrong_and_both_replicas_name_the_leader() {
    let demo = Demo::start(&["--scenario", "none"]);
    let (leader, other, token) = pages(&demo).await;
    Cluster::of(&demo).await.make_trouble().await;
    let answer = eventually("the trouble in /status", DEADLINE, || async {
        let answer = status(&leader, &token);
        let is_said = answer["summary"]["text"] == "1 Service failing, 1 Node waiting";
        let is_target = !uses_of(&answer, "ghost").is_empty();
        (is_said && is_target).then_some(answer)
    })
    .await;
    assert_eq!(answer["version"], env!("CARGO_PKG_VERSION"));
    let service = &answer["balancers"][0];
    assert_eq!(
        service["service"], "default/broken",
        "the worst comes first"
    );
    assert_eq!(service["state"], "failing");
    let why = service["waitsFor"].as_str().expect("a reason");
    assert!(why.contains("cloudkeel.dev/lb-drain-seconds"), "{why}");
    assert_eq!(answer["waitingNodes"][0]["node"], "ghost");
    for target_use in uses_of(&answer, "ghost") {
        assert_eq!(target_use, "noProviderId", "{answer}");
    }
    let holder = &answer["leader"]["holder"];
    assert!(holder.is_string(), "{}", answer["leader"]);
    // It may still be on its way to its first look at the lease.
    let standby = eventually("the leader, by the other replica", DEADLINE, || async {
        let standby = status(&other, &token);
        (standby["leader"]["holder"] == *holder).then_some(standby)
    })
    .await;
    assert_eq!(standby["leading"], false);
    assert_eq!(standby["summary"]["level"], "neutral");
}

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test]
async fn a_replica_that_stands_by_says_who_leads_and_shows_no_empty_tables() {
    let demo = Demo::start(&["--scenario", "none"]);
    let (leader, other, token) = pages(&demo).await;
    let browser = Browser::open_with(&token, &other, false, (390, 844));
    browser.shows("#summary", "This replica stands by").await;
    let leader = status(&leader, &token);
    let holder = leader["leader"]["holder"].as_str().expect("a holder");
    browser.shows("#summary-facts", holder).await;
    let drawn = browser.run("return document.querySelector('main').getClientRects().length");
    assert_eq!(drawn, 0, "nothing that looks like an empty cluster");
}

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test]
async fn the_page_of_a_manager_is_read_and_pictured_light_dark_and_on_a_phone() {
    let album = Screenshots::open();
    let mut demo = Demo::start(&["--scenario", "power-off"]);
    for _ in 0..3 {
        let step = demo.line().expect("a step");
        assert_eq!(step["step"]["passed"], true, "{step}");
    }
    let (page, token) = page_of_leader(&demo).await;
    for (name, dark, size) in [
        ("page-light.png", false, (1280, 1250)),
        ("page-dark.png", true, (1280, 1250)),
        ("page-phone.png", false, (390, 1200)),
    ] {
        let browser = Browser::open_with(&token, &page, dark, size);
        browser.is_live().await;
        browser.shows("#managers", "leads").await;
        browser.shows("#summary", "All is well: 3 Nodes").await;
        let version = concat!("version ", env!("CARGO_PKG_VERSION"));
        browser.shows("#summary", version).await;
        browser
            .shows("#nodes-rows tr:nth-child(3)", "running")
            .await;
        browser.shows("#balancers", "serving").await;
        browser.shows("#routes", "ours").await;
        browser.shows("#events", "EnsuredLoadBalancer").await;
        assert_eq!(browser.wider_than_screen(), json!([]));
        let buttons = browser.run("return document.querySelectorAll('button[data-action]').length");
        assert_eq!(buttons, 0, "it only shows");
        album.take(&browser, name);
    }
}
