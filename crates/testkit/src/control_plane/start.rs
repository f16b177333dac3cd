//! Starting the servers.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::clients::Clients;
use super::flags::{self, ApiserverFiles};
use super::notice::notice;
use super::pki::Authority;
use super::readiness;
use super::run_dir::RunDir;
use super::supervisor::{Leftovers, Server, Supervised};
use super::tools::{Tool, provide};
use super::{ControlPlane, ControlPlaneError, audit, kept_by_request, stop_all};

/// How often another process may take the port that we have just chosen.
const PORT_ATTEMPTS: u32 = 5;

/// Far beyond the usual few seconds, for machines that compile at the same time.
pub(super) const DEADLINE: Duration = Duration::from_mins(2);

/// The name of the certificate authority of every run.
pub(super) const AUTHORITY: &str = "cloudkeel-test-ca";

/// What is started, and how long it may take.
pub(super) struct Launch {
    pub(super) etcd: PathBuf,
    pub(super) kube_apiserver: PathBuf,
    pub(super) deadline: Duration,
    /// Whether the API server writes an audit log.
    pub(super) audited: bool,
    /// More flags for the API server.
    pub(super) flags: Vec<String>,
}

impl Launch {
    /// The programs of this machine, built first if need be.
    pub(super) async fn prepare() -> Result<Self, ControlPlaneError> {
        Ok(Self {
            etcd: provide(Tool::Etcd).await?.path,
            kube_apiserver: provide(Tool::KubeApiserver).await?.path,
            deadline: DEADLINE,
            audited: false,
            flags: Vec::new(),
        })
    }

    /// Starts on ports from `choose_port` until one of them is really free.
    pub(super) async fn start(
        &self,
        mut choose_port: impl FnMut() -> io::Result<u16>,
    ) -> Result<ControlPlane, ControlPlaneError> {
        let mut attempt = 1;
        loop {
            let port = choose_port().map_err(ControlPlaneError::io("choose a port"))?;
            match self.start_on(port).await {
                Err(ControlPlaneError::Died { log, run_dir, .. })
                    if attempt < PORT_ATTEMPTS && log.contains("address already in use") =>
                {
                    notice(&format!("port {port} was taken meanwhile, trying another"));
                    attempt += 1;
                    std::fs::remove_dir_all(run_dir).map_err(ControlPlaneError::io(
                        "remove the directory of a failed attempt",
                    ))?;
                }
                outcome => return outcome,
            }
        }
    }

    async fn start_on(&self, port: u16) -> Result<ControlPlane, ControlPlaneError> {
        let began = Instant::now();
        let run = RunDir::create().map_err(ControlPlaneError::io("create a run directory"))?;
        let authority = Authority::new(AUTHORITY)?;
        let (api_server, mut servers, clients) = self.spawn(port, &run, authority)?;
        let version = match readiness::wait(&clients, &mut servers, run.path(), self.deadline).await
        {
            Ok(version) => version,
            Err(error) => {
                stop_all(&mut servers, Leftovers::Keep);
                return Err(error);
            }
        };
        notice(&format!(
            "control plane {version} ready in {:.1} s (logs: {})",
            began.elapsed().as_secs_f64(),
            run.path().display()
        ));
        Ok(ControlPlane {
            run,
            clients,
            version,
            servers,
            api_server: Some(api_server),
        })
    }

    /// Starts both servers at once: kube-apiserver waits for etcd by itself. Each has a directory of its own, so
    /// that each supervisor can remove what belongs to its server.
    fn spawn(
        &self,
        port: u16,
        run: &RunDir,
        authority: Authority,
    ) -> Result<(Server, Vec<Supervised>, Clients), ControlPlaneError> {
        let directory = |tool: Tool| {
            run.subdirectory(tool.name())
                .map_err(ControlPlaneError::io("create the directory of a server"))
        };
        let etcd_dir = directory(Tool::Etcd)?;
        let apiserver_dir = directory(Tool::KubeApiserver)?;
        let files = ApiserverFiles::write(&apiserver_dir, &authority)?;

        let mut arguments = flags::kube_apiserver(&files, &flags::etcd_socket(&etcd_dir), port);
        if self.audited {
            let audit = audit::flags(&apiserver_dir);
            arguments.extend(audit.map_err(ControlPlaneError::io("write the audit policy"))?);
        }
        arguments.extend(self.flags.iter().cloned());
        let etcd = Server {
            name: Tool::Etcd.name(),
            program: self.etcd.clone(),
            arguments: flags::etcd(&etcd_dir),
            dir: etcd_dir.clone(),
        };
        let kube_apiserver = Server {
            name: Tool::KubeApiserver.name(),
            program: self.kube_apiserver.clone(),
            arguments,
            dir: apiserver_dir.clone(),
        };
        let servers = [etcd, kube_apiserver.clone()]
            .into_iter()
            .map(|server| Supervised::start(server, kept_by_request()))
            .collect::<io::Result<_>>()
            .map_err(ControlPlaneError::io(
                "start a supervisor, for which `sh` is needed",
            ))?;
        let url = format!("https://127.0.0.1:{port}");
        let clients = Clients::new(url, authority, files.client_ca(), apiserver_dir)?;
        Ok((kube_apiserver, servers, clients))
    }
}
