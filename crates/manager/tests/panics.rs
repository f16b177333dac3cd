//! Every panic is counted and reported, wherever it is caught. In a process of its own, because the hook is the process's.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use cloudkeel_manager::health::Health;
use cloudkeel_manager::logging::log_panics;
use cloudkeel_manager::metrics::{BuildInfo, Format, Metrics};
use jiff::Timestamp;

#[tokio::test]
async fn every_panic_is_counted_and_the_last_one_is_reported() {
    let health = Health::new(Timestamp::UNIX_EPOCH);
    let metrics = Metrics::new(&BuildInfo::of_version("0.0.0"), Timestamp::UNIX_EPOCH);
    let panics = || serde_json::to_value(health.status_report().read()).unwrap()["panics"].clone();
    let exposes = |line: &str| {
        let text = metrics.expose(Format::Plain).unwrap();
        text.lines().any(|exposed| exposed == line)
    };
    assert!(panics().is_null(), "a healthy process says nothing");
    assert!(exposes("cloudkeel_panics_total 0.0"));

    log_panics();
    let task = tokio::spawn(async { panic!("first") });
    assert!(task.await.is_err());
    let caught = std::panic::catch_unwind(|| panic!("second"));
    assert!(caught.is_err());

    let panics = panics();
    assert_eq!(panics["total"], 2);
    let message = panics["message"].as_str().unwrap();
    assert!(
        message.contains("second") && message.contains("panics.rs"),
        "{message}"
    );
    assert!(exposes("cloudkeel_panics_total 2.0"));
}
