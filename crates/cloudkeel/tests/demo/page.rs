//! The live page, clicked through in a browser.

use cloudkeel_testkit::cluster::eventually;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::http::ask;
use crate::process::{DEADLINE, Demo};

fn host(demo: &Demo) -> String {
    let page = demo.text("page");
    let host = page
        .strip_prefix("http://")
        .and_then(|p| p.strip_suffix('/'));
    host.expect("an address").to_owned()
}

fn picture(host: &str) -> Value {
    let (status, picture) = ask(host, "GET", "/picture", None);
    assert_eq!(status, 200, "{picture}");
    picture
}

fn press(host: &str, id: &str, on: &str) -> (u16, Value) {
    ask(host, "POST", "/press", Some(&json!({"id": id, "on": on})))
}

#[tokio::test]
async fn the_picture_has_everything_and_buttons_do_what_they_say() {
    let demo = Demo::start(&["--scenario", "none", "--nodes", "2"]);
    let host = host(&demo);
    let first = eventually("a whole picture", DEADLINE, || async {
        let picture = picture(&host);
        let ready = |row: &Value| row["state"] == "Ready";
        let nodes = picture["nodes"].as_array().expect("nodes");
        let all_ready = nodes.len() == 2 && nodes.iter().all(ready);
        let serves = picture["balancers"][0]["state"] == "in service";
        let leads = picture["controllers"]
            .as_array()
            .is_some_and(|c| !c.is_empty());
        let routes = picture["routes"].as_array().is_some_and(|r| r.len() == 2);
        (all_ready && serves && leads && routes).then_some(picture)
    })
    .await;
    assert_eq!(first["clouds"][0]["state"], "answers");
    assert_eq!(first["managers"].as_array().map(Vec::len), Some(2));
    for (id, on, status, message) in [
        ("add-machine", "", 200, "node-03 was made and joins."),
        ("power-off", "node-01", 200, "node-01 was switched off."),
        ("power-on", "node-01", 200, "node-01 was switched on."),
        (
            "power-off",
            "node-99",
            409,
            "there is no machine node-99 (any more)",
        ),
        ("kill", "manager-z", 409, "there is no manager manager-z"),
        ("explode", "", 409, "\"explode\" is no button of this page"),
    ] {
        let (got, answer) = press(&host, id, on);
        assert_eq!((got, answer["message"].as_str()), (status, Some(message)));
    }
}

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test]
async fn a_person_adds_stops_destroys_breaks_and_kills_by_clicks() {
    let demo = Demo::start(&["--scenario", "none"]);
    let browser = Browser::open(demo.text("page"), false, 1280, 1000);
    browser.shows("#connection", "live").await;
    browser.shows("#balancers", "in service").await;
    browser.shows("#nodes-count", "3").await;

    browser.click("[data-action='add-machine']").await;
    browser.shows("#said", "node-04 was made and joins.").await;
    browser.shows("#nodes-count", "4").await;
    browser.shows("#nodes-rows tr:nth-child(4)", "Ready").await;

    browser
        .click("[data-action='power-off'][data-on='node-02']")
        .await;
    let row = "#nodes-rows tr:nth-child(2)";
    browser.shows(row, "shut down").await;
    browser
        .shows(row, "node.cloudprovider.kubernetes.io/shutdown")
        .await;
    browser
        .click("[data-action='power-on'][data-on='node-02']")
        .await;
    browser.shows(row, "running").await;

    browser
        .click("[data-action='destroy'][data-on='node-04']")
        .await;
    browser.loses("#nodes-rows tr:nth-child(4)").await;

    browser.click("[data-action='break-cloud']").await;
    browser
        .shows("#notice", "every call is answered with 503")
        .await;
    browser.shows("#clouds", "does not answer").await;
    browser.click("[data-action='mend-cloud']").await;
    browser.shows("#clouds", "answers").await;
    browser.shows("#nodes-count", "3").await;

    let chip = "#managers [role='listitem']";
    let leader = browser.run(
        "return [...document.querySelectorAll('#managers [role=listitem]')]
           .find(chip => chip.innerText.includes('leads'))?.querySelector('strong').innerText",
    );
    let leader = leader.as_str().expect("a leader").to_owned();
    browser
        .click(&format!("[data-action='kill'][data-on='{leader}']"))
        .await;
    browser
        .shows("#said", &format!("{leader} was killed"))
        .await;
    let follows = format!(
        "return [...document.querySelectorAll({chip:?})]
           .some(chip => chip.innerText.includes('leads') && !chip.innerText.includes('{leader}'))"
    );
    eventually("another leader on the page", DEADLINE, || async {
        browser.run(&follows) == true
    })
    .await;
}

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test]
async fn the_page_fits_a_phone_and_says_when_it_is_not_live() {
    let mut demo = Demo::start(&["--scenario", "none"]);
    let browser = Browser::open(demo.text("page"), false, 390, 844);
    browser.shows("#connection", "live").await;
    browser.shows("#nodes-count", "3").await;
    let overflow = "return document.documentElement.scrollWidth - window.innerWidth";
    assert_eq!(browser.run(overflow), 0, "nothing is wider than the screen");
    demo.signal("INT");
    assert_eq!(demo.ended().await, Some(0));
    browser.shows("#connection", "not live").await;
}
