//! Nothing is left behind, however the process that started a control plane ends.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use cloudkeel_testkit::cluster::eventually;
use cloudkeel_testkit::control_plane::{ControlPlane, Tool, provide};

const LONG: Duration = Duration::from_secs(30);

/// Set for a test that runs as the process to be ended.
const ROLE: &str = "CLOUDKEEL_TEST_ROLE";

/// The command lines of all processes that name the directory: servers and supervisors alike.
fn processes_of(run_dir: &Path) -> Vec<String> {
    let run_dir = run_dir.to_str().unwrap();
    let command_line = |entry: fs::DirEntry| {
        let bytes = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
        line.contains(run_dir).then_some(line)
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(command_line)
        .collect()
}

fn assert_running(run_dir: &Path) {
    let processes = processes_of(run_dir);
    for server in ["etcd", "kube-apiserver"] {
        let runs = |line: &String| {
            line.split(' ')
                .next()
                .is_some_and(|program| program.ends_with(server))
        };
        assert!(
            processes.iter().any(runs),
            "{server} does not run: {processes:?}"
        );
    }
}

async fn assert_gone(run_dir: &Path) {
    eventually("the end of every process", LONG, || async {
        let left = processes_of(run_dir);
        if left.is_empty() {
            Ok(true)
        } else {
            Err(left.join("\n"))
        }
    })
    .await;
    eventually("the removal of the run directory", LONG, || async {
        !run_dir.exists()
    })
    .await;
}

/// This test binary once more, running one test in a role.
struct TestProcess {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl TestProcess {
    async fn start(test: &str, role: &str) -> Self {
        for tool in [Tool::Etcd, Tool::KubeApiserver] {
            provide(tool).await.expect("a program of the control plane");
        }
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(ROLE, role)
            // It is to have a control plane of its own.
            .env_remove("CLOUDKEEL_CONTROL_PLANE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = process.stdin.take().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        Self {
            process,
            stdin,
            stdout,
        }
    }

    /// The run directory, which the process prints once its control plane runs.
    fn run_dir(&mut self) -> PathBuf {
        let prefix = "run directory: ";
        loop {
            let mut line = String::new();
            let length = self.stdout.read_line(&mut line).unwrap();
            assert_ne!(length, 0, "the process ended before its control plane ran");
            if let Some((_, path)) = line.trim_end().split_once(prefix) {
                return PathBuf::from(path);
            }
        }
    }
}

/// What that process does: it starts the shared control plane, prints its directory, and waits for a line.
async fn act() {
    let plane = ControlPlane::shared().await;
    println!("\nrun directory: {}", plane.run_dir().display());
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .unwrap();
}

#[tokio::test]
async fn a_killed_process_leaves_nothing_behind() {
    if std::env::var_os(ROLE).is_some() {
        return act().await;
    }
    let mut victim =
        TestProcess::start("teardown::a_killed_process_leaves_nothing_behind", "victim").await;
    let run_dir = victim.run_dir();
    assert_running(&run_dir);
    victim.process.kill().unwrap();
    victim.process.wait().unwrap();
    assert_gone(&run_dir).await;
}

#[tokio::test]
async fn a_process_that_ends_without_dropping_leaves_nothing_behind() {
    if std::env::var_os(ROLE).is_some() {
        return act().await;
    }
    let mut child = TestProcess::start(
        "teardown::a_process_that_ends_without_dropping_leaves_nothing_behind",
        "child",
    )
    .await;
    let run_dir = child.run_dir();
    assert_running(&run_dir);
    writeln!(child.stdin, "done").unwrap();
    assert!(child.process.wait().unwrap().success());
    assert_gone(&run_dir).await;
}

#[tokio::test]
async fn a_dropped_control_plane_is_gone_at_once() {
    let plane = ControlPlane::start().await.unwrap();
    let run_dir = plane.run_dir().to_owned();
    assert_running(&run_dir);
    drop(plane);
    assert_eq!(processes_of(&run_dir), Vec::<String>::new());
    assert!(!run_dir.exists());
}
