//! Real connections under a paused clock.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use cloudkeel_emulation::interposer::{Interposer, Proxy, RealTime, in_real_time};
use cloudkeel_emulation::{CommonFault, FaultInjector as _, FaultMatch, Served};
use cloudkeel_http::TlsSettings;
use http::Method;
use tokio::time::{Instant, timeout};

use crate::interposer::{CLASSIFIER, Disks, app, body_of, send};

/// Nothing takes this long by a clock that stands still.
const INSTANT: Duration = Duration::from_nanos(1);

fn connections() -> RealTime {
    RealTime::connections(TlsSettings::default()).unwrap()
}

async fn served(router: Router) -> Served {
    let served = in_real_time(Served::on_loopback(router)).await;
    served.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_stands_still_while_a_server_answers() {
    let server = served(app(&Disks::default())).await;
    let uri = format!("{}/disks", server.url());
    let began = Instant::now();
    let transport = connections();
    for _ in 0..3 {
        let sent = timeout(INSTANT, send(&transport, Method::GET, &uri, "")).await;
        assert_eq!(body_of(&sent.unwrap().unwrap())["total"], 0);
    }
    assert_eq!(Instant::now(), began);
    drop(server);
    let refused = timeout(INSTANT, send(&connections(), Method::GET, &uri, "")).await;
    assert!(refused.unwrap().is_err(), "a server that is gone refuses");
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_the_clock_goes_on_and_the_caller_times_out() {
    let never = async || {
        std::future::pending::<()>().await;
        "never"
    };
    let server = served(Router::new().route("/", get(never))).await;
    let transport = connections().with_patience(Duration::from_millis(50));
    let began = Instant::now();
    let minute = Duration::from_mins(1);
    let sent = timeout(minute, send(&transport, Method::GET, &server.url(), "")).await;
    assert!(sent.is_err(), "there is no answer: {sent:?}");
    assert!(began.elapsed() >= minute, "on the paused clock");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_is_not_waited_for() {
    let never = async || {
        std::future::pending::<()>().await;
        "never"
    };
    let server = served(Router::new().route("/", get(never))).await;
    let transport = connections();
    let url = server.url();
    let sent = send(&transport, Method::GET, &url, "");
    // The clock stands still, so the other branch wins by being ready.
    tokio::select! {
        biased;
        answer = sent => panic!("{answer:?}"),
        () = tokio::task::yield_now() => {}
    }
    let minute = Duration::from_mins(1);
    let began = Instant::now();
    tokio::time::sleep(minute).await;
    assert!(began.elapsed() >= minute, "the clock goes on");
}

#[tokio::test(start_paused = true)]
async fn an_interposer_plays_hours_of_faults_in_front_of_a_real_server() {
    let server = served(app(&Disks::default())).await;
    let interposer = Interposer::new(CLASSIFIER);
    let transport = interposer.transport(Arc::new(connections()));
    let uri = format!("{}/disks", server.url());
    let hours = Duration::from_hours(3);
    interposer.once(FaultMatch::any(), CommonFault::Slow { by: hours });
    let began = Instant::now();
    let slow = send(&transport, Method::GET, &uri, "").await.unwrap();
    assert_eq!(slow.status(), 200);
    assert!(began.elapsed() >= hours, "on the paused clock");
    assert_eq!(interposer.calls_of("list-disks"), 1);
}

#[tokio::test(start_paused = true)]
async fn another_project_is_another_way_to_the_cloud() {
    let (ours, theirs) = (Disks::default(), Disks::default());
    theirs.lock().unwrap().push("theirs".to_owned());
    let (ours, theirs) = (served(app(&ours)).await, served(app(&theirs)).await);
    let elsewhere = Elsewhere(connections(), theirs.url());
    let interposer = Interposer::new(CLASSIFIER).with_other_project(Arc::new(elsewhere));
    let (through, upstream) = (interposer.clone(), ours.url());
    let proxy = in_real_time(async move { Proxy::start(&through, &upstream).await });
    let proxy = proxy.await.unwrap().unwrap();
    let uri = format!("{}/disks", proxy.url());
    let transport = connections();
    let project = "theirs".to_owned();
    let fault = CommonFault::OtherProject { project };
    assert!(interposer.inject(cloudkeel_emulation::FaultTiming::Always, fault));
    let seen = send(&transport, Method::GET, &uri, "").await.unwrap();
    assert_eq!(body_of(&seen)["total"], 1, "theirs");
    interposer.clear_faults();
    let seen = send(&transport, Method::GET, &uri, "").await.unwrap();
    assert_eq!(body_of(&seen)["total"], 0, "ours");
    assert_eq!(interposer.calls_of("list-disks"), 2, "both count");
}

/// Another server.
struct Elsewhere(RealTime, String);

#[async_trait::async_trait]
impl cloudkeel_http::Transport for Elsewhere {
    async fn send(
        &self,
        mut request: http::Request<bytes::Bytes>,
    ) -> Result<http::Response<bytes::Bytes>, cloudkeel_http::TransportError> {
        let uri = format!("{}{}", self.1, request.uri().path());
        *request.uri_mut() = uri.parse().unwrap();
        self.0.send(request).await
    }
}
