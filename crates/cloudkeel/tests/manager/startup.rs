//! Before any replica leads.

use std::net::TcpListener;
use std::process::Command;

use cloudkeel_testkit::cluster::eventually;
use tempfile::TempDir;

use crate::harness::{DEADLINE, Manager};
use crate::serving::{free_port, get};

const CLOUDS: &str = "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: a\n  provider: local\n  \
                      config: {endpoint: \"http://127.0.0.1:1\", token: t}\n";

/// A manager whose API server accepts requests and never responds.
struct Waiting {
    manager: Manager,
    mute: TcpListener,
    _folder: TempDir,
}

impl Waiting {
    fn start(secure_port: u16) -> Self {
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
            format!("--secure-port={secure_port}"),
            "--bind-address=127.0.0.1".to_owned(),
        ]);
        let manager = Manager::spawn(program, folder.path().join("log"));
        Self {
            manager,
            mute,
            _folder: folder,
        }
    }

    async fn ends_when_asked(mut self) {
        self.manager.signal("TERM");
        let code = self.manager.ended().await.code();
        assert_eq!(code, Some(0), "{}", self.manager.log());
    }
}

#[tokio::test]
async fn a_manager_that_waits_for_a_mute_api_server_ends_when_it_is_asked_to() {
    let waiting = Waiting::start(0);
    let mute = &waiting.mute;
    let _question = eventually("a connection", DEADLINE, || async { mute.accept().ok() }).await;
    waiting.ends_when_asked().await;
}

#[tokio::test]
async fn a_manager_that_waits_for_its_api_server_is_alive_and_not_ready() {
    let port = free_port();
    let waiting = Waiting::start(port);
    let alive = eventually("an answer", DEADLINE, || async { get(port, "/livez") }).await;
    assert_eq!(alive.0, 200, "{alive:?}");
    let (code, body) = get(port, "/readyz?verbose").expect("an answer");
    assert_eq!(code, 500, "{body}");
    assert!(body.contains("[-]startup failed"), "{body}");
    let (code, body) = get(port, "/metrics").expect("an answer");
    assert_eq!(code, 503, "access control is not ready: {body}");
    waiting.ends_when_asked().await;
}
