//! The live page, clicked through in a browser.

use cloudkeel_testkit::cluster::eventually;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::cluster::Cluster;
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
    assert_eq!(first["summary"]["level"], "good", "{}", first["summary"]);
    let holder = first["leader"]["holder"].as_str().expect("a leader");
    assert!(holder.starts_with("manager-"), "{holder}");
    assert_eq!(first["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(first["clouds"][0]["state"], "answers");
    assert_eq!(first["managers"].as_array().map(Vec::len), Some(2));
    for (id, on, status, message) in [
        ("add-machine", "", 200, "node-03 was created and joins."),
        ("power-off", "node-01", 200, "node-01 was switched off."),
        ("power-on", "node-01", 200, "node-01 was switched on."),
        (
            "power-off",
            "node-99",
            409,
            "there is no machine node-99 (any more)",
        ),
        ("kill", "manager-z", 409, "there is no manager manager-z"),
        (
            "explode",
            "",
            409,
            "\"explode\" is not a button of this page",
        ),
    ] {
        let (got, answer) = press(&host, id, on);
        assert_eq!((got, answer["message"].as_str()), (status, Some(message)));
    }
}

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test]
async fn the_buttons_add_stop_destroy_break_and_kill() {
    let demo = Demo::start(&["--scenario", "none"]);
    let browser = Browser::open(demo.text("page"), false, 1280, 1000);
    browser.is_live().await;
    browser.shows("#balancers", "in service").await;
    browser.shows("#nodes-count", "3").await;

    browser.click("[data-action='add-machine']").await;
    browser
        .shows("#said", "node-04 was created and joins.")
        .await;
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
    let leads = "return [...document.querySelectorAll('#managers [role=listitem]')]
           .find(chip => chip.innerText.includes('leads'))?.querySelector('strong').innerText";
    let leader = eventually("a leader on the page", DEADLINE, || async {
        browser.run(leads).as_str().map(str::to_owned)
    })
    .await;
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

#[tokio::test]
async fn the_page_shows_the_emulated_hetzner_cloud_and_its_buttons_work() {
    let demo = Demo::start(&["--cloud", "hetzner", "--scenario", "none", "--nodes", "2"]);
    let host = host(&demo);
    let picture = || picture(&host);
    let all_well = || {
        eventually("that all is well", DEADLINE, || async {
            let picture = picture();
            let targets = picture["balancers"][0]["targets"].as_array().map(Vec::len);
            let routes = picture["routes"].as_array().map(Vec::len);
            let well = picture["summary"]["text"] == "All is well: 2 Nodes, 1 load balancer";
            (well && targets == Some(2) && routes == Some(2)).then_some(picture)
        })
    };
    let first = all_well().await;
    let cloud = &first["clouds"][0];
    assert_eq!(
        (&cloud["name"], &cloud["provider"]),
        (&json!("hetzner"), &json!("hcloud"))
    );
    assert_eq!(first["nodes"][0]["cloud"], "hetzner");
    assert_eq!(first["nodes"][0]["kind"], "cx22 · fsn1");
    let balancer = &first["balancers"][0];
    assert_eq!(balancer["targets"][0]["node"], "node-01");
    assert_eq!(press(&host, "power-off", "node-02").0, 200);
    eventually("a Node that is shut down", DEADLINE, || async {
        picture()["summary"]["text"] == "1 Node shut down"
    })
    .await;
    assert_eq!(press(&host, "power-on", "node-02").0, 200);
    all_well().await;
    assert_eq!(press(&host, "break-cloud", "").0, 200);
    eventually("a cloud that does not answer", DEADLINE, || async {
        picture()["clouds"][0]["state"] == "does not answer"
    })
    .await;
    assert_eq!(press(&host, "mend-cloud", "").0, 200);
    all_well().await;
}

/// What a reader must see at once: a Service that is refused, and a Node without a machine.
#[tokio::test]
async fn what_is_broken_stands_on_top_with_the_reason_and_so_does_the_want_of_a_leader() {
    let demo = Demo::start(&["--scenario", "none", "--nodes", "2"]);
    let host = host(&demo);
    let cluster = Cluster::of(&demo).await;
    cluster.make_trouble().await;
    let picture = eventually("both on top", DEADLINE, || async {
        let picture = picture(&host);
        let is_said = picture["summary"]["text"] == "1 Service failing, 1 Node waiting";
        is_said.then_some(picture)
    })
    .await;
    let why = |object: &str| {
        let problems = picture["summary"]["problems"].as_array().expect("problems");
        let problem = problems.iter().find(|problem| problem["object"] == object);
        let why = problem.and_then(|problem| problem["why"].as_str());
        why.unwrap_or_else(|| panic!("{object} in {problems:?}"))
            .to_owned()
    };
    assert!(why("Service default/broken").contains("cloudkeel.dev/lb-drain-seconds"));
    assert!(why("Node ghost").contains("no machine matches the name"));
    let row = |kind: &str, key: &str, name: &str| {
        let rows = picture[kind].as_array().expect("rows").iter();
        let row = rows.into_iter().find(|row| row[key] == name);
        row.unwrap_or_else(|| panic!("no {name} in {picture}"))
            .clone()
    };
    let broken = row("balancers", "service", "default/broken");
    assert_eq!(
        (&broken["level"], &broken["traffic"]),
        (&json!("bad"), &Value::Null)
    );
    assert_eq!(row("nodes", "name", "ghost")["machineState"], "none found");
    for name in ["manager-a", "manager-b"] {
        // One may be between its end and its next start.
        let _ = press(&host, "kill", name);
    }
    eventually("that there is no leader", DEADLINE, || async {
        let summary = &self::picture(&host)["summary"];
        summary["text"] == "No manager leads: nothing is reconciled"
    })
    .await;
}

/// Elements whose text is cut off or wider than the screen.
const CLIPPED: &str = "
    return [...document.querySelectorAll('body *')]
      .filter((one) => !one.closest('.unseen, .skip, thead') && one.getClientRects().length > 0)
      .filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1
        || (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline'))
      .map((one) => `${one.tagName} ${one.id} ${one.className}: ${one.innerText.slice(0, 60)}`)";

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test]
async fn nothing_is_cut_off_or_drawn_twice_however_long_the_names_are() {
    let demo = Demo::start(&["--scenario", "none"]);
    let cluster = Cluster::of(&demo).await;
    cluster.make_trouble().await;
    cluster.make_long_names().await;
    for (width, dark) in [(390, false), (1280, true)] {
        let browser = Browser::open(demo.text("page"), dark, width, 900);
        browser.shows("#summary", "1 Service failing").await;
        browser.shows("#summary", "Node ghost").await;
        let rows = "return document.querySelectorAll('.targets li').length";
        eventually(
            "three Nodes behind each of four ports",
            DEADLINE,
            || async { browser.run(rows) == 12 },
        )
        .await;
        assert_eq!(browser.run(CLIPPED), json!([]), "at {width}");
        if width == 1280 {
            let squeezed = "return [...document.querySelectorAll('#nodes td.buttons')]
                .filter((cell) => new Set([...cell.children].map((one) => one.offsetTop)).size > 1)
                .length";
            assert_eq!(
                browser.run(squeezed),
                0,
                "taints leave the other columns their room"
            );
        }
        let kept = "return document.querySelectorAll('.targets li.seen').length";
        browser.run(
            "document.querySelectorAll('.targets li').forEach((li) => li.classList.add('seen'))",
        );
        // Later updates keep what is there and add nothing.
        browser.run(
            "window.fetched = 0;
             const real = window.fetch;
             window.fetch = (...words) => { window.fetched += 1; return real(...words); };",
        );
        eventually("three more pictures", DEADLINE, || async {
            browser.run("return window.fetched >= 4") == true
        })
        .await;
        assert_eq!(
            (browser.run(rows), browser.run(kept)),
            (json!(12), json!(12))
        );
    }
    let browser = Browser::open(demo.text("page"), false, 1280, 900);
    browser.is_live().await;
    let twice = browser.run(
        "return import('./draw.js').then(({ element, list, say }) => {
           const parent = element('ul');
           const draw = (items) => list(parent, items, () => 'same', () => element('li'), say);
           for (let round = 0; round < 5; round += 1) draw(['a', 'b', 'c']);
           draw(['d', 'e']);
           return [...parent.children].map((child) => child.textContent);
         })",
    );
    assert_eq!(twice, json!(["d", "e"]), "items of one key do not pile up");
}

#[ignore = "needs Chromium: cargo xtask test --tier page"]
#[tokio::test]
async fn the_page_fits_a_phone_and_says_when_it_is_not_live() {
    let mut demo = Demo::start(&["--scenario", "none"]);
    let browser = Browser::open(demo.text("page"), false, 390, 844);
    browser.is_live().await;
    browser.shows("#nodes-count", "3").await;
    assert_eq!(browser.wider_than_screen(), json!([]));
    demo.signal("INT");
    assert_eq!(demo.ended().await, Some(0));
    browser.shows("#connection", "not live").await;
}
