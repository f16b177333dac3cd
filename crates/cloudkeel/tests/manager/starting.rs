//! Before anybody leads.

use std::net::TcpListener;
use std::process::Command;

use cloudkeel_testkit::cluster::eventually;
use tempfile::TempDir;

use crate::harness::{DEADLINE, Manager};

const CLOUDS: &str = "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: a\n  provider: local\n  \
                      config: {endpoint: \"http://127.0.0.1:1\", token: t}\n";

#[tokio::test]
async fn a_manager_that_waits_for_a_mute_api_server_ends_when_it_is_asked_to() {
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    mute.set_nonblocking(true)
        .expect("a listener that can be polled");
    let address = mute.local_addr().expect("its address");
    let folder = TempDir::new().expect("a temporary folder");
    let config = folder.path().join("clouds.yaml");
    std::fs::write(&config, CLOUDS).expect("the file is written");
    let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
    program.args([
        format!("--master=http://{address}"),
        format!("--cloud-config={}", config.display()),
        "--secure-port=0".to_owned(),
    ]);
    let mut manager = Manager::spawn(program, folder.path().join("log"));
    // It asks its first question, and nobody will answer.
    let _question = eventually("a connection", DEADLINE, || async { mute.accept().ok() }).await;
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
}
