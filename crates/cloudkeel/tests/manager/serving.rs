//! The secure port of the real process.

use std::process::Command;

use cloudkeel_testkit::cluster::eventually;

use crate::harness::{DEADLINE, World};

pub(crate) fn free_port() -> u16 {
    cloudkeel_testkit::control_plane::free_port().expect("a port on loopback")
}

/// The status of a request without credentials, and the body.
pub(crate) fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let output = Command::new("curl")
        .args([
            "--silent",
            "--insecure",
            "--max-time",
            "5",
            "--write-out",
            "\n%{http_code}",
        ])
        .arg(format!("https://127.0.0.1:{port}{path}"))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, code) = text.rsplit_once('\n')?;
    Some((
        code.parse().ok().filter(|code| *code != 0)?,
        body.to_owned(),
    ))
}

#[tokio::test]
async fn probes_are_open_and_metrics_are_not() {
    let world = World::new().await;
    let port = free_port();
    let secure_port = format!("--secure-port={port}");
    let manager = world.start(&[&secure_port, "--bind-address=127.0.0.1"]);
    manager.wait_for_log("controller started").await;
    eventually("readiness", DEADLINE, || async {
        get(port, "/readyz") == Some((200, "ok".to_owned()))
    })
    .await;
    for path in ["/healthz", "/livez"] {
        assert_eq!(get(port, path).map(|(code, _)| code), Some(200), "{path}");
    }
    let (_, checks) = get(port, "/healthz?verbose").expect("an answer");
    for check in [
        "leaderElection",
        "cloud-node-controller",
        "cloud-node-lifecycle-controller",
    ] {
        assert!(checks.contains(&format!("[+]{check} ok")), "{checks}");
    }
    for path in ["/metrics", "/configz", "/status", "/nowhere"] {
        assert_eq!(get(port, path).map(|(code, _)| code), Some(403), "{path}");
    }
}

#[tokio::test]
async fn a_path_that_is_always_allowed_needs_no_credentials() {
    let world = World::new().await;
    let port = free_port();
    let secure_port = format!("--secure-port={port}");
    let open = "--authorization-always-allow-paths=/metrics,/configz,/status";
    let manager = world.start(&[&secure_port, "--bind-address=127.0.0.1", open]);
    manager.wait_for_log("controller started").await;
    let (code, metrics) =
        eventually("an answer", DEADLINE, || async { get(port, "/metrics") }).await;
    assert_eq!(code, 200);
    for metric in [
        "workqueue_depth",
        "leader_election_master_status",
        "rest_client_requests_total",
        "cloudkeel_cloud_calls_total",
    ] {
        assert!(metrics.contains(metric), "{metric}");
    }
    let (_, configz) = get(port, "/configz").expect("an answer");
    let configz: serde_json::Value = serde_json::from_str(&configz).expect("JSON");
    let config = &configz["cloudcontrollermanager.config.k8s.io"];
    assert_eq!(config["kind"], "CloudControllerManagerConfiguration");
    assert!(
        !configz.to_string().contains("world-token"),
        "no credential is shown"
    );
    let (_, status) = get(port, "/status").expect("an answer");
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["leading"], true, "{status}");
    let name = &status["controllers"][0]["name"];
    assert_eq!(name, "cloud-node-controller", "{status}");
    assert!(status["clouds"][0]["name"].is_string(), "{status}");
}

#[tokio::test]
async fn the_log_gets_wordy_and_quiet_while_the_manager_runs() {
    let world = World::new().await;
    let port = free_port();
    let secure_port = format!("--secure-port={port}");
    let open = "--authorization-always-allow-paths=/debug/flags/v";
    let manager = world.start(&[&secure_port, "--bind-address=127.0.0.1", open, "-v=0"]);
    manager.wait_for_log("controller started").await;
    let set = |level: &str| {
        let url = format!("https://127.0.0.1:{port}/debug/flags/v");
        let put = [
            "--silent",
            "--insecure",
            "--max-time",
            "5",
            "--request",
            "PUT",
        ];
        let mut curl = Command::new("curl");
        let output = curl.args(put).args(["--data", level, &url]).output();
        String::from_utf8_lossy(&output.expect("curl runs").stdout).into_owned()
    };
    assert!(!manager.log().contains("DEBUG"), "{}", manager.log());
    let answer = set("4");
    assert!(answer.contains('4'), "{answer}");
    manager.wait_for_log("DEBUG").await;
    let refused = set("loud");
    assert!(refused.contains("loud"), "{refused}");
}
