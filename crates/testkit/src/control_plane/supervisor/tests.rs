use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use super::super::run_dir::RunDir;
use super::*;
use crate::cluster::eventually;

/// Far more than a shell needs to begin or to end.
const LONG: Duration = Duration::from_secs(30);

/// A run directory whose server is a shell one-liner.
struct Stage {
    run: RunDir,
    server: Supervised,
}

impl Stage {
    fn start(line: &str, on_exit: Leftovers) -> Self {
        let run = RunDir::create().unwrap();
        let dir = run.subdirectory("server").unwrap();
        let server = Server {
            name: "server",
            program: PathBuf::from("/bin/sh"),
            arguments: ["-c", line].map(str::to_owned).into(),
            dir,
        };
        let server = Supervised::start(server, on_exit).unwrap();
        Self { run, server }
    }

    /// Starts a server that runs until it is stopped, and waits until it does run.
    async fn start_forever(on_exit: Leftovers) -> Self {
        let stage = Self::start("echo up; while :; do sleep 1; done", on_exit);
        eventually("a server that is up", LONG, || async {
            stage.server.log_tail(1) == "up"
        })
        .await;
        stage
    }

    fn stop(&mut self, leftovers: Leftovers) {
        self.server.stop(leftovers);
        self.server.wait();
    }

    fn clean_up(self) {
        std::fs::remove_dir_all(self.run.path()).unwrap();
    }
}

#[tokio::test]
async fn a_stopped_server_leaves_no_directory() {
    let mut stage = Stage::start_forever(Leftovers::Remove).await;
    stage.stop(Leftovers::Remove);
    assert!(!stage.run.path().exists());
}

#[tokio::test]
async fn a_directory_that_is_to_be_kept_is_kept() {
    for (case, on_exit, leftovers) in [
        ("by the order to stop", Leftovers::Remove, Leftovers::Keep),
        (
            "by the rule for every exit",
            Leftovers::Keep,
            Leftovers::Remove,
        ),
    ] {
        let mut stage = Stage::start_forever(on_exit).await;
        stage.stop(leftovers);
        assert_eq!(stage.server.log_tail(1), "up", "{case}");
        stage.clean_up();
    }
}

#[tokio::test]
async fn the_run_directory_stays_while_another_server_uses_it() {
    let mut stage = Stage::start_forever(Leftovers::Remove).await;
    let other = stage.run.subdirectory("other").unwrap();
    stage.stop(Leftovers::Remove);
    assert!(other.exists());
    assert!(!stage.run.path().join("server").exists());
    stage.clean_up();
}

#[tokio::test]
async fn a_server_that_ends_by_itself_is_noticed_and_its_log_kept() {
    let mut stage = Stage::start("echo no such flag >&2; exit 7", Leftovers::Remove);
    let ended = || std::future::ready(stage.server.ended());
    let status = eventually("the end of the server", LONG, ended).await;
    assert_eq!(status.code(), Some(7));
    assert_eq!(status.signal(), None);
    assert_eq!(stage.server.log_tail(5), "no such flag");
    stage.clean_up();
}

#[test]
fn the_environment_of_the_machine_does_not_configure_the_server() {
    let mut stage = Stage::start("echo \"${CARGO_MANIFEST_DIR:-nothing}\"", Leftovers::Remove);
    stage.server.wait();
    assert_eq!(stage.server.log_tail(1), "nothing");
    stage.clean_up();
}
