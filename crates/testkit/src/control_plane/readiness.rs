//! Waiting until a started control plane can be used.

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, Client};

use super::ControlPlaneError;
use super::clients::Clients;
use super::supervisor::Supervised;

const POLL: Duration = Duration::from_millis(50);
const LINES_OF_LOG: usize = 15;

/// Waits until the API server is ready and has written its own first objects; returns its version.
pub(super) async fn wait(
    clients: &Clients,
    servers: &mut [Supervised],
    run_dir: &Path,
    deadline: Duration,
) -> Result<String, ControlPlaneError> {
    let client = clients.impatient()?;
    let began = Instant::now();
    loop {
        let reason = match unmet(&client).await {
            Ok(version) => return Ok(version),
            Err(reason) => reason,
        };
        fail_if_one_died(servers, run_dir)?;
        if began.elapsed() > deadline {
            return Err(ControlPlaneError::Late {
                deadline,
                reason,
                run_dir: run_dir.to_owned(),
                log: logs(servers),
            });
        }
        tokio::time::sleep(POLL).await;
    }
}

fn fail_if_one_died(servers: &mut [Supervised], run_dir: &Path) -> Result<(), ControlPlaneError> {
    for server in servers {
        let ended = server
            .ended()
            .map_err(ControlPlaneError::io("ask for the state of a server"))?;
        if let Some(status) = ended {
            return Err(ControlPlaneError::Died {
                server: server.name(),
                status,
                run_dir: run_dir.to_owned(),
                log: server.log_tail(LINES_OF_LOG),
            });
        }
    }
    Ok(())
}

fn logs(servers: &[Supervised]) -> String {
    let log =
        |server: &Supervised| format!("--- {}\n{}", server.name(), server.log_tail(LINES_OF_LOG));
    servers.iter().map(log).collect::<Vec<_>>().join("\n")
}

/// The version if nothing is missing, else what is.
async fn unmet(client: &Client) -> Result<String, String> {
    let because = |what: &'static str| move |error: kube::Error| format!("{what}: {error}");
    readyz(client).await.map_err(because("/readyz"))?;
    // The server writes these in the background, after it has called itself ready.
    for name in ["default", "kube-system", "kube-node-lease"] {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.get(name).await.map_err(because("namespaces"))?;
    }
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    config_maps
        .get("extension-apiserver-authentication")
        .await
        .map_err(because("the authentication ConfigMap"))?;
    let version = client
        .apiserver_version()
        .await
        .map_err(because("/version"))?;
    Ok(version.git_version)
}

async fn readyz(client: &Client) -> Result<String, kube::Error> {
    let request = http::Request::get("/readyz")
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    client.request_text(request).await
}
