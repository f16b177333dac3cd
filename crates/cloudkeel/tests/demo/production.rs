//! The page that a manager itself serves with `--page`, in a browser that has a token.

use cloudkeel_testkit::cluster::eventually;
use serde_json::Value;

use crate::browser::Browser;
use crate::pictures::Album;
use crate::process::{DEADLINE, Demo};

/// The page of the manager that leads, and a token that opens it.
async fn page_of_leader(demo: &Demo) -> (String, String) {
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
    (leads.await, token)
}

fn picture(page: &str, token: &str) -> Option<Value> {
    let output = std::process::Command::new("curl")
        .args(["--silent", "--insecure", "--max-time", "5"])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .arg(format!("{page}picture"))
        .output();
    serde_json::from_slice(&output.expect("curl runs").stdout).ok()
}

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test]
async fn the_page_of_a_manager_is_read_and_pictured_light_dark_and_on_a_phone() {
    let album = Album::open();
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
        browser.shows("#connection", "live").await;
        browser.shows("#managers", "leads").await;
        browser
            .shows("#nodes-rows tr:nth-child(3)", "running")
            .await;
        browser.shows("#balancers", "serving").await;
        browser.shows("#routes", "ours").await;
        browser.shows("#events", "EnsuredLoadBalancer").await;
        let overflow = "return document.documentElement.scrollWidth - window.innerWidth";
        assert_eq!(browser.run(overflow), 0, "nothing is wider than the screen");
        let buttons = browser.run("return document.querySelectorAll('button').length");
        assert_eq!(buttons, 0, "it only shows");
        album.take(&browser, name);
    }
}
