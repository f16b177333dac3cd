use std::path::PathBuf;

use cloudkeel_api::SystemClock;
use jiff::Timestamp;
use tokio::time::Instant;

use super::*;
use crate::health::Endpoint;
use crate::metrics::BuildInfo;
use crate::testing::{ApiServer, failure};

const VERSION: &str = r#"{"major": "1", "minor": "35", "gitVersion": "v1.35.0", "gitCommit": "",
    "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}"#;

#[tokio::test(start_paused = true)]
async fn an_api_server_is_waited_for_and_given_up_whether_it_refuses_or_is_mute() {
    let busy = failure(503);
    for (case, answer, seconds, problem) in [
        ("it answers", Some((200, VERSION)), 0, None),
        (
            "it refuses",
            Some((503, &*busy)),
            10,
            Some("the API server does not answer: 503 Because: no"),
        ),
        (
            "it takes the question and says nothing",
            None,
            10,
            Some("the API server does not answer: no answer within 10 s"),
        ),
    ] {
        let client = ApiServer::answering(&[answer]).client();
        let began = Instant::now();
        let waited = wait_for_api_server(&client).await;
        let said = waited.err().map(|error| error.to_string());
        assert_eq!(said.as_deref(), problem, "{case}");
        assert_eq!(began.elapsed().as_secs(), seconds, "{case}");
    }
}

#[tokio::test]
async fn a_leader_that_panics_has_failed() {
    let led = or_panicked(async { panic!("planted") }).await;
    assert!(matches!(led, Err(RunError::Panicked(why)) if why == "planted"));
    assert!(or_panicked(async { Ok(()) }).await.is_ok());
}

#[test]
fn a_migration_file_that_cannot_be_read_is_named() {
    let options = ElectionOptions {
        enabled: true,
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
        name: "ccm".to_owned(),
        namespace: "kube-system".to_owned(),
        release_on_exit: true,
        migration: true,
        migration_config: Some(PathBuf::from("/does/not/exist")),
    };
    let error = Migration::read(&options, &[]).err().unwrap().to_string();
    let expected = "leader election: --leader-migration-config: \"/does/not/exist\": expected a readable file: ";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn each_lease_has_a_health_check_of_its_own() {
    let elector = |lease: &str| {
        let config = ElectionConfig::new("kube-system", lease, "me");
        let client = ApiServer::answering(&[None]).client();
        Elector::kubernetes(config, client, Arc::new(SystemClock)).unwrap()
    };
    let health = Health::new(Timestamp::UNIX_EPOCH);
    let metrics = Metrics::new(&BuildInfo::default(), Timestamp::UNIX_EPOCH);
    let (main, shared) = (elector("ccm"), elector("migration"));
    register("leaderElection", &main.election(), &health, &metrics);
    register("leaderMigration", &shared.election(), &health, &metrics);
    let body = health.examine(Endpoint::Livez, &[]).body(true);
    assert_eq!(
        body,
        "[+]leaderElection ok\n[+]leaderMigration ok\nlivez check passed\n"
    );
}
