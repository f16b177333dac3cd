//! The REST API of a running cloud, by real connections.

use cloudkeel_api::{ErrorKind, Secret};
use cloudkeel_http::{Client, HeaderAuth, Request};
use cloudkeel_local_cloud::simulated_cloud::wire::{BalancerAnswer, Machine};
use cloudkeel_local_cloud::{BalancerStats, CloudStats, Files, Running, STATS_PATH, STOP_PATH};
use serde_json::json;

use crate::lab::{Backend, DEADLINE, Front, Lab};

fn client(lab: &Lab) -> Client {
    let contact = lab.local.contact();
    let token = std::fs::read_to_string(&contact.token_file).expect("a token");
    Client::builder(contact.url.clone())
        .authorizer(HeaderAuth::bearer(Secret::new(token)))
        .build()
        .expect("a client")
}

/// Makes a machine where a backend runs, and a balancer in front of it.
async fn serve(api: &Client, backend: &Backend) -> (Machine, Front) {
    let machine = Request::post("/v1/machines").json(json!({
        "name": "node", "addresses": [{"scope": "private", "ip": backend.address.ip()}]
    }));
    let machine: Machine = api.fetch(machine).await.expect("a machine");
    let new = Request::post("/v1/balancers").json(json!({
        "name": "web",
        "listeners": [{"protocol": "tcp", "port": 8080, "targetPort": backend.address.port()}],
        "targets": [{"machine": machine.id}],
    }));
    let BalancerAnswer { balancer, .. } = api.fetch(new).await.expect("a balancer");
    let front = Front {
        id: balancer.id,
        address: (balancer.addresses[0], 8080).into(),
    };
    (machine, front)
}

#[tokio::test]
async fn a_balancer_that_is_answered_for_serves_and_shows_what_it_did() {
    let lab = Lab::new().await;
    let backend = Backend::one("a").await;
    let api = client(&lab);
    let (_, front) = serve(&api, &backend).await;
    assert_eq!(front.ask().await.as_deref(), Some("a"), "at once");
    lab.until(&front, "it is counted", |targets| targets[0].bytes_out == 2)
        .await;
    let all: CloudStats = api
        .fetch(Request::get(STATS_PATH))
        .await
        .expect("statistics");
    let one = Request::get("/v1/balancers/{id}/stats").param("id", front.id);
    let one: BalancerStats = api.fetch(one).await.expect("statistics");
    let ids: Vec<_> = all.balancers.iter().map(|balancer| balancer.id).collect();
    assert_eq!(ids, [one.id]);
    assert_eq!(one.name, "web");
    let port = &one.ports[0];
    assert!(port.frontends[0].listening);
    assert_eq!(port.targets[0].connections, 1);
    assert!(!all.routes.kernel && all.routes.reason.is_some());
    let missing = Request::get("/v1/balancers/{id}/stats").param("id", 999);
    let error = api.fetch::<BalancerStats>(missing).await.expect_err("none");
    assert!(error.to_string().contains("999"), "{error}");
}

#[tokio::test]
async fn a_machine_that_is_switched_off_gets_no_more_connections() {
    let lab = Lab::new().await;
    let backend = Backend::one("a").await;
    let api = client(&lab);
    let (machine, front) = serve(&api, &backend).await;
    for (operation, expected) in [("power-off", None), ("power-on", Some("a"))] {
        let path = format!("/v1/machines/{}/{operation}", machine.id);
        let _: Machine = api.fetch(Request::post(path)).await.expect("it obeys");
        assert_eq!(front.ask().await.as_deref(), expected, "{operation}");
    }
}

#[tokio::test]
async fn no_client_comes_in_without_the_token() {
    let lab = Lab::new().await;
    let url = lab.local.contact().url.clone();
    let stranger = Client::builder(url)
        .authorizer(HeaderAuth::bearer(Secret::new("demo-token")))
        .build()
        .expect("a client");
    for request in [
        Request::get("/v1/machines"),
        Request::get(STATS_PATH),
        Request::post(STOP_PATH),
    ] {
        let operation = request.operation().to_owned();
        let error = stranger.send(request).await.expect_err("refused");
        assert_eq!(
            error.kind(),
            ErrorKind::Unauthenticated,
            "{operation}: {error}"
        );
    }
    let control = client(&lab).send(Request::get("/control/settings")).await;
    assert!(control.is_err(), "steering is off unless it is asked for");
    assert!(!lab.local.stop().is_cancelled());
}

#[tokio::test]
async fn faults_can_be_played_on_a_real_cloud_too() {
    let lab = Lab::with(|options| options.control = true).await;
    let api = client(&lab);
    let fault = Request::post("/control/faults").json(json!({
        "on": {"operation": "list-balancers"}, "times": 1, "fault": {"kind": "status", "status": 403}
    }));
    api.send(fault).await.expect("the fault is written down");
    let list = || Request::get("/v1/balancers");
    assert!(api.send(list()).await.is_err());
    assert!(api.send(list()).await.is_ok());
}

#[tokio::test]
async fn the_cloud_ends_when_it_is_asked_to_by_its_api() {
    let lab = Lab::new().await;
    let files = Files::of(lab.options.files.state.clone());
    assert!(matches!(files.running(), Ok(Running::Yes(_))));
    client(&lab)
        .send(Request::post(STOP_PATH))
        .await
        .expect("it obeys");
    tokio::time::timeout(DEADLINE, lab.local.stop().cancelled())
        .await
        .expect("it heard");
    lab.local.close().await;
    assert_eq!(files.running().expect("a lock"), Running::No);
}
