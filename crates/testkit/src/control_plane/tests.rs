use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::ControlPlaneError;
use super::free_port;
use super::run_dir::RunDir;
use super::start::Launch;

/// Removes the logs that a failed start has left.
struct Leavings<'a>(&'a Path);

impl Drop for Leavings<'_> {
    fn drop(&mut self) {
        std::fs::remove_dir_all(self.0).unwrap();
    }
}

#[tokio::test]
async fn a_port_that_was_taken_meanwhile_is_replaced_by_another() {
    let occupied = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken = occupied.local_addr().unwrap().port();
    let mut choices = [taken].into_iter();
    let launch = Launch::prepare().await.unwrap();
    let plane = launch
        .start(|| choices.next().map_or_else(free_port, Ok))
        .await
        .unwrap();
    assert_ne!(plane.url(), format!("https://127.0.0.1:{taken}"));
    assert_eq!(choices.next(), None, "the taken port was tried");
}

#[tokio::test]
async fn a_server_that_dies_ends_the_start_with_its_log() {
    // A shell refuses the flags of etcd with a complaint.
    let launch = Launch {
        etcd: PathBuf::from("/bin/sh"),
        kube_apiserver: PathBuf::from("/bin/sh"),
        deadline: Duration::from_mins(1),
        audited: false,
        flags: Vec::new(),
    };
    let error = launch.start(free_port).await.unwrap_err();
    let message = error.to_string();
    let ControlPlaneError::Died {
        server,
        run_dir,
        log,
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    let _leavings = Leavings(&run_dir);
    let file = run_dir.join(server).join(format!("{server}.log"));
    assert_eq!(std::fs::read_to_string(file).unwrap().trim_end(), log);
    assert!(log.contains("option"), "{log}");
    for part in [
        server,
        "ended during start-up with exit status",
        run_dir.to_str().unwrap(),
        &log,
    ] {
        assert!(message.contains(part), "{part:?} is missing in: {message}");
    }
}

#[tokio::test]
async fn servers_that_never_get_ready_are_reported_with_both_logs() {
    let bin = RunDir::create().unwrap();
    let _bin = Leavings(bin.path());
    let idle = bin.path().join("idle");
    // Written by a child: a file that we have open for writing cannot be run.
    let script = r#"printf '#!/bin/sh\nexec sleep 600\n' >"$0" && chmod +x "$0""#;
    let written = Command::new("sh").args(["-c", script]).arg(&idle).status();
    assert!(written.unwrap().success());

    let launch = Launch {
        etcd: idle.clone(),
        kube_apiserver: idle,
        deadline: Duration::from_millis(100),
        audited: false,
        flags: Vec::new(),
    };
    let error = launch.start(free_port).await.unwrap_err();
    let message = error.to_string();
    let ControlPlaneError::Late {
        reason, run_dir, ..
    } = error
    else {
        panic!("{error:?}");
    };
    let _leavings = Leavings(&run_dir);
    assert!(reason.starts_with("/readyz: "), "{reason}");
    for part in [
        "not ready within 100ms",
        run_dir.to_str().unwrap(),
        "--- etcd\n",
        "--- kube-apiserver\n",
    ] {
        assert!(message.contains(part), "{part:?} is missing in: {message}");
    }
}
