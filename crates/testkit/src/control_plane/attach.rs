//! One control plane for several processes: one publishes how to reach it, the others attach.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::clients::Clients;
use super::pki::Authority;
use super::run_dir::{RunDir, private_dir};
use super::start::AUTHORITY;
use super::{ControlPlane, ControlPlaneError, Tool};

/// The variable with the run directory of a control plane that runs already.
pub(super) const VARIABLE: &str = "CLOUDKEEL_CONTROL_PLANE";

/// What another process has to know; it also signs certificates for the users that it makes up.
#[derive(Serialize, Deserialize)]
struct Published {
    url: String,
    version: String,
    ca_pem: String,
    ca_der: Vec<u8>,
    ca_key: String,
}

/// In the directory of kube-apiserver, which only this user may enter, and which is removed with it.
fn file_in(run_dir: &Path) -> PathBuf {
    apiserver_dir(run_dir).join("attach.json")
}

fn apiserver_dir(run_dir: &Path) -> PathBuf {
    run_dir.join(Tool::KubeApiserver.name())
}

impl ControlPlane {
    /// Lets other processes attach to this control plane, by the value of `CLOUDKEEL_CONTROL_PLANE` that is
    /// returned. It still ends with this one.
    pub fn publish(&self) -> Result<&Path, ControlPlaneError> {
        let authority = self.clients.authority();
        let published = Published {
            url: self.clients.url().to_owned(),
            version: self.version.clone(),
            ca_pem: authority.pem(),
            ca_der: authority.der(),
            ca_key: authority.key(),
        };
        let text = serde_json::to_string(&published).map_err(std::io::Error::from);
        text.and_then(|text| std::fs::write(file_in(self.run_dir()), text))
            .map_err(ControlPlaneError::io("publish the control plane"))?;
        Ok(self.run_dir())
    }

    /// The control plane that the environment names, or a new one.
    pub(super) async fn attach_or_start() -> Result<Self, ControlPlaneError> {
        match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            Some(run_dir) => Self::attach(Path::new(&run_dir)),
            None => Self::start().await,
        }
    }

    /// Attaches to a control plane that another process has published.
    pub(super) fn attach(run_dir: &Path) -> Result<Self, ControlPlaneError> {
        let published = std::fs::read(file_in(run_dir))
            .and_then(|text| serde_json::from_slice(&text).map_err(std::io::Error::from));
        let published: Published = published.map_err(ControlPlaneError::io(
            "read how to attach to a control plane",
        ))?;
        let authority = Authority::of(
            AUTHORITY,
            published.ca_pem,
            published.ca_der,
            &published.ca_key,
        )?;
        let server_dir = apiserver_dir(run_dir);
        let own_dir = server_dir.join(format!("clients-{}", std::process::id()));
        private_dir(&own_dir).map_err(ControlPlaneError::io("create a directory for clients"))?;
        let ca_file = server_dir.join("ca.crt");
        Ok(Self {
            run: RunDir::existing(run_dir.to_owned()),
            clients: Clients::new(published.url, authority, &ca_file, own_dir)?,
            version: published.version,
            servers: Vec::new(),
            api_server: None,
        })
    }
}
