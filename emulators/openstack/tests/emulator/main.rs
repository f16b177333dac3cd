//! What the emulated Octavia and Keystone refuse, as the real ones do.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail as loudly as tests"
)]

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_emulator_openstack::{InProcess, OpenStackCloud, Settings};
use cloudkeel_http::{Client, HeaderAuth, Request, RetryPolicy};
use http::HeaderName;
use serde_json::{Value, json};

async fn login(cloud: &OpenStackCloud, password: &str) -> Result<Client, u16> {
    let builder = |path: &str| {
        Client::builder(format!("{}{path}", InProcess::URL))
            .transport(Arc::new(cloud.transport()))
            .retry(RetryPolicy::never())
    };
    let identity =
        json!({"methods": ["password"], "password": {"user": {"id": "u", "password": password}}});
    let body = json!({"auth": {"identity": identity}});
    let keystone = builder("/identity/v3").build().unwrap();
    let answer = keystone
        .send(Request::post("/auth/tokens").json(body))
        .await
        .map_err(|error| status(&error))?;
    let token = answer.header("x-subject-token").unwrap().to_owned();
    let header = HeaderName::from_static("x-auth-token");
    let octavia =
        builder("/load-balancer/v2.0/lbaas").authorizer(HeaderAuth::header(header, token.into()));
    Ok(octavia.build().unwrap())
}

fn status(error: &cloudkeel_api::CloudError) -> u16 {
    let failure = cloudkeel_http::CallFailure::of(error).unwrap();
    failure.status.unwrap().as_u16()
}

fn balancer() -> Request {
    let listener = json!({"protocol": "TCP", "protocol_port": 80});
    let body = json!({"loadbalancer": {"name": "lb", "vip_subnet_id": OpenStackCloud::SUBNET, "listeners": [listener]}});
    Request::post("/loadbalancers").json(body)
}

#[tokio::test(start_paused = true)]
async fn a_pending_load_balancer_is_immutable_and_one_with_children_needs_a_cascade() {
    let cloud = OpenStackCloud::new(Settings {
        job_duration: Duration::from_secs(5),
        load_balancers: 1,
        ..Settings::default()
    });
    assert_eq!(login(&cloud, "wrong").await.err(), Some(401));
    let octavia = login(&cloud, OpenStackCloud::PASSWORD).await.unwrap();
    let made: Value = octavia.fetch(balancer()).await.unwrap();
    let made = &made["loadbalancer"];
    assert_eq!(made["provisioning_status"], "PENDING_CREATE");
    let id = made["id"].as_str().unwrap();
    let listener = |protocol: &str, port: u16| {
        let body = json!({"listener": {"loadbalancer_id": id, "protocol": protocol, "protocol_port": port}});
        octavia.send(Request::post("/listeners").json(body))
    };
    let delete = |cascade: bool| {
        octavia.send(
            Request::delete("/loadbalancers/{id}")
                .param("id", id)
                .query("cascade", cascade),
        )
    };
    for (case, refused, expected) in [
        ("it is pending", listener("TCP", 81).await, 409),
        ("the quota is used up", octavia.send(balancer()).await, 403),
        ("it cannot be deleted either", delete(true).await, 409),
    ] {
        assert_eq!(status(&refused.unwrap_err()), expected, "{case}");
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(
        status(&listener("HTTP", 80).await.unwrap_err()),
        409,
        "HTTP is TCP"
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(status(&delete(false).await.unwrap_err()), 400);
    delete(true).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let gone = octavia
        .send(Request::get("/loadbalancers/{id}").param("id", id))
        .await;
    assert_eq!(status(&gone.unwrap_err()), 404);
    assert!(
        cloud
            .all(cloudkeel_emulator_openstack::Kind::Listener)
            .is_empty()
    );
}
