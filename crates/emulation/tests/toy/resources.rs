//! What the engine gives to resources: lists, nested paths, jobs and locks, commands in XML, logins.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::json;

use crate::cloud::{Operation, Settings, Toy, json_of};

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn a_list_has_pages_filters_and_an_order() {
    let toy = Toy::new(Settings::default());
    for name in ["c", "a", "b"] {
        toy.create(name).await;
    }
    for (query, disks, next) in [
        ("", json!(["\"c\"", "\"a\"", "\"b\""]), json!(null)),
        (
            "?per_page=2&sort=name",
            json!(["\"a\"", "\"b\""]),
            json!("/disks?per_page=2&sort=name&page=2"),
        ),
        (
            "?per_page=2&sort=name&page=2",
            json!(["\"c\""]),
            json!(null),
        ),
        ("?name=%22a%22", json!(["\"a\""]), json!(null)),
    ] {
        let (status, list) = toy.get(&format!("/disks{query}")).await;
        assert_eq!((status, &list["disks"]), (200, &disks), "{query}");
        assert_eq!(list["next"], next, "{query}");
    }
    let (status, error) = toy.get("/disks?colour=red").await;
    assert_eq!(status, 400);
    assert_eq!(error["error"], "colour: there is no such parameter");
}

#[tokio::test(start_paused = true)]
async fn a_job_locks_its_resource_and_ends_by_itself() {
    let toy = Toy::new(Settings {
        snapshot_duration: MINUTE,
        ..Settings::default()
    });
    toy.create("a").await;
    let snapshots = "/disks/1/snapshots";
    assert_eq!(toy.post(snapshots, "").await.0, 202);
    assert_eq!(toy.post(snapshots, "").await.0, 423, "the disk is busy");
    assert_eq!(toy.get(snapshots).await.1["total"], 0, "it is not made yet");
    tokio::time::advance(MINUTE).await;
    assert_eq!(toy.get(snapshots).await.1["total"], 1);
    assert_eq!(toy.post(snapshots, "").await.0, 202);
    assert_eq!(toy.post("/disks/9/snapshots", "").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_nested_resource_is_found_below_its_own_parent_only() {
    let toy = Toy::new(Settings::default());
    for name in ["a", "b"] {
        toy.create(name).await;
    }
    for _ in 0..3 {
        toy.post("/disks/1/snapshots", "").await;
    }
    let (_, first) = toy.get("/disks/1/snapshots?limit=2").await;
    assert_eq!(
        (
            &first["total"],
            first["snapshots"].as_array().unwrap().len()
        ),
        (&json!(3), 2)
    );
    let marker = first["next"].as_str().unwrap();
    let (_, second) = toy
        .get(&format!("/disks/1/snapshots?marker={marker}"))
        .await;
    assert_eq!(second["snapshots"].as_array().unwrap().len(), 1);
    let id = second["snapshots"][0]["id"].as_str().unwrap();
    for (disk, status) in [(1, 200), (2, 404)] {
        let path = format!("/disks/{disk}/snapshots/{id}");
        assert_eq!(toy.get(&path).await.0, status, "disk {disk}");
    }
    let call = toy.call_log().pop().unwrap();
    assert_eq!(call.operation, Operation::GetSnapshot);
    assert_eq!(
        call.resource.as_deref(),
        Some(id),
        "the last part of the path"
    );
}

#[tokio::test(start_paused = true)]
async fn commands_share_a_path_and_are_counted_by_name() {
    let toy = Toy::new(Settings::default());
    toy.create("a").await;
    let (status, zones) = toy.post("/query?Action=DescribeZones", "").await;
    assert_eq!(status, 200);
    assert!(zones.contains("<item><name>b</name></item>"), "{zones}");
    let rename = "Action=RenameDisk&Disk=1&Name=new";
    let (_, renamed) = toy.post("/query", rename).await;
    assert!(
        renamed.ends_with("<return>true</return></RenameDiskResponse>"),
        "{renamed}"
    );
    assert_eq!(toy.get("/disks/1").await.1, "new");
    let log = toy.call_log();
    assert_eq!(
        log[1].body,
        json!({"Action": "RenameDisk", "Disk": "1", "Name": "new"})
    );
    let (status, error) = toy.post("/query", "Action=Fly").await;
    assert_eq!(status, 400);
    assert!(error.contains("<Message>Fly</Message>"), "{error}");
    let calls = toy.calls();
    assert_eq!(calls.of(Operation::DescribeZones), 1);
    assert_eq!(
        (calls.reads(), calls.mutations()),
        (2, 2),
        "a description only reads"
    );
}

#[tokio::test(start_paused = true)]
async fn a_login_gives_a_session_that_ends() {
    let toy = Toy::new(Settings::default());
    let login = async |password: &str| {
        let basic = STANDARD.encode(format!("user:{password}"));
        let header = ("authorization", format!("Basic {basic}"));
        let sent = toy.send_with(header, Method::POST, "/login", "").await;
        sent.unwrap()
    };
    assert_eq!(login("wrong").await.status(), 401);
    let token = json_of(&login("secret").await)["token"].clone();
    let token = token.as_str().unwrap();
    for (after, status) in [(MINUTE, 200), (MINUTE * 9, 403)] {
        tokio::time::advance(after).await;
        let answer = toy.send(token, Method::GET, "/disks", "").await.unwrap();
        assert_eq!(answer.status(), status);
    }
    assert_eq!(toy.calls().mutations(), 0, "a login changes nothing");
}
