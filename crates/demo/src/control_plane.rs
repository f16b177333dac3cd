//! A real etcd and kube-apiserver.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::KeyPair;
use serde_json::json;
use tokio::process::Child;

use crate::children::SERVER;
use crate::cluster::client;
use crate::managers::{free_port, spawn};
use crate::polling::until;

/// The folder of the programs, as in the tests of other projects.
const FOLDER: &str = "KUBEBUILDER_ASSETS";

/// The servers. They end when this is dropped.
pub(crate) struct ControlPlaneServers {
    pub(crate) url: String,
    pub(crate) kubeconfig: String,
    pub(crate) token: String,
    _children: [Child; 2],
}

/// Starts both and waits until they answer.
pub(crate) async fn start(folder: &Path) -> Result<ControlPlaneServers, String> {
    let (etcd, apiserver) = (program("etcd")?, program("kube-apiserver")?);
    let (clients, peers, api) = (free_port()?, free_port()?, free_port()?);
    let storage = format!("http://127.0.0.1:{clients}");
    let peer = format!("http://127.0.0.1:{peers}");
    let etcd = spawn_server(
        folder,
        "etcd",
        &etcd,
        &[
            format!("--data-dir={}", folder.join("etcd").display()),
            format!("--listen-client-urls={storage}"),
            format!("--advertise-client-urls={storage}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--unsafe-no-fsync".to_owned(),
        ],
    )?;
    let token = secret()?;
    let flags = apiserver_flags(folder, &storage, api, &token)?;
    let apiserver = spawn_server(folder, "kube-apiserver", &apiserver, &flags)?;
    let url = format!("https://127.0.0.1:{api}");
    let kubeconfig = until("kube-apiserver is ready", || ready(folder, &url, &token)).await;
    let kubeconfig = kubeconfig.map_err(|why| format!("{why}; its log: {}", tail(folder)))?;
    Ok(ControlPlaneServers {
        url,
        kubeconfig,
        token,
        _children: [etcd, apiserver],
    })
}

fn program(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let path = folder.map(|folder| folder.join(name));
    path.filter(|path| path.is_file()).ok_or_else(|| {
        format!(
            "--control-plane=real needs {name}: set {FOLDER} to a folder with etcd and \
             kube-apiserver, such as the one that `setup-envtest use -p path` prints"
        )
    })
}

/// A random password.
fn secret() -> Result<String, String> {
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    Ok(BASE64_STANDARD
        .encode(key.serialized_der())
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .rev()
        .take(40)
        .collect())
}

fn apiserver_flags(
    folder: &Path,
    storage: &str,
    port: u16,
    token: &str,
) -> Result<Vec<String>, String> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text)
            .map(|()| path.display().to_string())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let public = write("service-accounts.pub", &key.public_key_pem())?;
    let private = write("service-accounts.pem", &key.serialize_pem())?;
    let tokens = write("tokens.csv", &format!("{token},demo,demo,system:masters\n"))?;
    let certificates = folder.join("apiserver");
    Ok(vec![
        format!("--etcd-servers={storage}"),
        format!("--cert-dir={}", certificates.display()),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--token-auth-file={tokens}"),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--service-account-issuer=https://demo.invalid".to_owned(),
        format!("--service-account-key-file={public}"),
        format!("--service-account-signing-key-file={private}"),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        // Until they can be read, the server is not ready.
        "--endpoint-reconciler-type=none".to_owned(),
    ])
}

fn spawn_server(
    folder: &Path,
    name: &str,
    program: &Path,
    flags: &[String],
) -> Result<Child, String> {
    let words = [SERVER.to_owned(), folder.display().to_string()];
    let words = words
        .into_iter()
        .chain([program.display().to_string()])
        .chain(flags.iter().cloned());
    spawn(words, &folder.join(format!("{name}.log")))
}

/// The kubeconfig, once the certificate exists and the server is ready.
async fn ready(folder: &Path, url: &str, token: &str) -> Option<String> {
    let certificate = std::fs::read(folder.join("apiserver/apiserver.crt")).ok()?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "demo",
        "clusters": [{"name": "demo", "cluster": {
            "server": url, "certificate-authority-data": BASE64_STANDARD.encode(certificate),
        }}],
        "users": [{"name": "demo", "user": {"token": token}}],
        "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "demo"}}],
    });
    let kubeconfig = format!("{kubeconfig:#}\n");
    let request = http::Request::get("/readyz").body(Vec::new()).ok()?;
    let client = client(&kubeconfig).await.ok()?;
    client.request_text(request).await.ok()?;
    Some(kubeconfig)
}

fn tail(folder: &Path) -> String {
    let log = std::fs::read_to_string(folder.join("kube-apiserver.log")).unwrap_or_default();
    let lines: Vec<_> = log.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}
