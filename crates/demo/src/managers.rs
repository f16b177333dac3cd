//! Two managers as child processes, restarted when they exit.

use std::fs::OpenOptions;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_page::SyncState;
use kube::config::AuthInfo;
use kube::{Client, Config};
use serde::Deserialize;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::children::MANAGER;
use crate::settings::{PODS, RESTART, SHORTENED};

const NAMES: [&str; 2] = ["manager-a", "manager-b"];

/// The timeout of a status request.
const ASK: Duration = Duration::from_secs(1);

/// How long a manager may take to exit.
const GRACE: Duration = Duration::from_secs(5);

/// The part of a manager's `/status` that is shown.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub(crate) leading: bool,
    pub(crate) leader: LeaderStatus,
    pub(crate) controllers: Vec<ControllerStatus>,
    pub(crate) clouds: Vec<CloudStatus>,
    pub(crate) balancers: Vec<BalancerStatus>,
    pub(crate) unserved_services: Vec<String>,
    pub(crate) waiting_nodes: Vec<WaitingNode>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LeaderStatus {
    pub(crate) holder: Option<String>,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BalancerStatus {
    pub(crate) service: String,
    pub(crate) state: SyncState,
    pub(crate) waits_for: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitingNode {
    pub(crate) node: String,
    pub(crate) waits_for: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ControllerStatus {
    pub(crate) name: String,
    pub(crate) running: bool,
    pub(crate) queue: QueueStatus,
    pub(crate) waits_for: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct QueueStatus {
    pub(crate) ready: u64,
    pub(crate) working: u64,
    pub(crate) delayed: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CloudStatus {
    #[serde(rename = "lastList")]
    pub(crate) last_list: Option<InstanceListStatus>,
    pub(crate) deletions: Option<Deletions>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct InstanceListStatus {
    pub(crate) at: String,
    pub(crate) machines: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Deletions {
    pub(crate) stopped: Option<Stop>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Stop {
    pub(crate) reason: String,
}

/// A manager, whose process is restarted when it exits.
struct ManagerProcess {
    name: &'static str,
    words: Vec<String>,
    log: PathBuf,
    page: String,
    running: Mutex<Option<Running>>,
    endpoint: Client,
}

/// The current process. A kill is for this one, not for its successor.
#[derive(Debug, Clone)]
struct Running {
    pid: u32,
    kill: CancellationToken,
}

/// The state of one manager.
#[derive(Debug, Clone)]
pub(crate) struct ManagerState {
    pub(crate) name: &'static str,
    pub(crate) pid: Option<u32>,
    /// Its own page, as in production: it needs a token.
    pub(crate) page: String,
    /// `None` while it does not answer.
    pub(crate) status: Option<Status>,
}

/// Both managers. They exit when this is dropped.
pub(crate) struct Managers {
    processes: Vec<Arc<ManagerProcess>>,
    stop: CancellationToken,
    supervisors: TaskTracker,
}

impl Managers {
    /// Starts them for this cluster and these clouds.
    pub(crate) fn start(
        folder: &Path,
        kubeconfig: &Path,
        clouds: &Path,
        token: &str,
    ) -> Result<Self, String> {
        let (stop, supervisors) = (CancellationToken::new(), TaskTracker::new());
        let mut processes = Vec::new();
        for name in NAMES {
            let port = free_port()?;
            let kubeconfig = kubeconfig.display();
            let mut words = vec![
                MANAGER.to_owned(),
                folder.display().to_string(),
                format!("--kubeconfig={kubeconfig}"),
                format!("--authentication-kubeconfig={kubeconfig}"),
                format!("--authorization-kubeconfig={kubeconfig}"),
                "--authentication-tolerate-lookup-failure".to_owned(),
                format!("--cloud-config={}", clouds.display()),
                format!("--cluster-cidr={PODS}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                "--page".to_owned(),
                "--v=2".to_owned(),
            ];
            words.extend(SHORTENED.map(str::to_owned));
            let process = Arc::new(ManagerProcess {
                name,
                words,
                log: folder.join(format!("{name}.log")),
                page: format!("https://127.0.0.1:{port}/page/"),
                running: Mutex::default(),
                endpoint: endpoint(port, token)?,
            });
            let first = process.spawn()?;
            supervisors.spawn(Arc::clone(&process).supervise(first, stop.clone()));
            processes.push(process);
        }
        supervisors.close();
        Ok(Self {
            processes,
            stop,
            supervisors,
        })
    }

    /// Their current state.
    pub(crate) async fn poll(&self) -> Vec<ManagerState> {
        let looks = self.processes.iter().map(|process| async {
            ManagerState {
                name: process.name,
                pid: process.running().map(|running| running.pid),
                page: process.page.clone(),
                status: process.status().await,
            }
        });
        futures::future::join_all(looks).await
    }

    /// The leader, if there is one.
    pub(crate) async fn leader(&self) -> Option<&'static str> {
        let leads = |seen: &ManagerState| seen.status.as_ref().is_some_and(|status| status.leading);
        let seen = self.poll().await.into_iter().find(leads);
        seen.map(|seen| seen.name)
    }

    /// Kills a manager with SIGKILL. It is restarted after a pause.
    pub(crate) fn kill(&self, name: &str) -> Result<(), String> {
        let process = self.processes.iter().find(|process| process.name == name);
        let process = process.ok_or_else(|| format!("there is no manager {name}"))?;
        let running = process.running();
        let running = running.ok_or_else(|| format!("{name} does not run right now"))?;
        running.kill.cancel();
        Ok(())
    }

    /// The paths of their logs.
    pub(crate) fn logs(&self) -> Vec<&Path> {
        self.processes
            .iter()
            .map(|process| process.log.as_path())
            .collect()
    }

    /// Stops both, and waits until they have exited.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.supervisors.wait().await;
    }
}

impl Drop for Managers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ManagerProcess {
    fn running(&self) -> Option<Running> {
        let running = self.running.lock();
        running.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_running(&self, running: Option<Running>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }

    async fn status(&self) -> Option<Status> {
        self.running()?;
        let request = http::Request::get("/status").body(Vec::new()).ok()?;
        timeout(ASK, self.endpoint.request(request))
            .await
            .ok()?
            .ok()
    }

    fn spawn(&self) -> Result<(Child, CancellationToken), String> {
        let child = spawn(self.words.clone(), &self.log)?;
        let kill = CancellationToken::new();
        let running = child.id().map(|pid| Running {
            pid,
            kill: kill.clone(),
        });
        self.set_running(running);
        Ok((child, kill))
    }

    /// Restarts the process whenever it exits.
    async fn supervise(
        self: Arc<Self>,
        (mut child, mut kill): (Child, CancellationToken),
        stop: CancellationToken,
    ) {
        loop {
            // Waiting closes the pipe of a child that still has it.
            let children = child.stdin.take();
            tokio::select! {
                _ = child.wait() => {}
                () = kill.cancelled() => {
                    // It fails only if the process has just exited by itself.
                    let _ = child.kill().await;
                }
                () = stop.cancelled() => {
                    drop(children);
                    return end(child).await;
                }
            }
            self.set_running(None);
            if stop.run_until_cancelled(sleep(RESTART)).await.is_none() {
                return;
            }
            (child, kill) = match self.spawn() {
                Ok(next) => next,
                Err(error) => return tracing::error!(err = %error, "failed to restart manager"),
            };
        }
    }
}

/// Waits for a child that was asked to exit.
async fn end(mut child: Child) {
    if timeout(GRACE, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// Starts this program as `demo` with these arguments, with a pipe that closes when this process ends.
pub(crate) fn spawn(words: impl IntoIterator<Item = String>, log: &Path) -> Result<Child, String> {
    let open = || {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .map_err(|error| format!("cannot write {}: {error}", log.display()))
    };
    let program = std::env::current_exe();
    let program = program.map_err(|error| format!("cannot find this program: {error}"))?;
    Command::new(program)
        .arg("demo")
        .args(words)
        // Ctrl-C must not reach it before this process.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(open()?)
        .stderr(open()?)
        .spawn()
        .map_err(|error| format!("cannot start this program once more: {error}"))
}

pub(crate) fn free_port() -> Result<u16, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("no free port on 127.0.0.1: {error}"))
}

/// A client of a manager's own endpoints. Their certificate is new at every start.
fn endpoint(port: u16, token: &str) -> Result<Client, String> {
    let url = format!("https://127.0.0.1:{port}").parse();
    let url = url.map_err(|error| format!("port {port}: {error}"))?;
    let mut config = Config::new(url);
    config.accept_invalid_certs = true;
    config.auth_info = AuthInfo {
        token: Some(token.to_owned().into()),
        ..AuthInfo::default()
    };
    Client::try_from(config).map_err(|error| error.to_string())
}
