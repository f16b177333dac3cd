//! The command lines of the two servers.

use std::io;
use std::path::{Path, PathBuf};

use super::ControlPlaneError;
use super::pki::{Authority, IdentityFiles, TokenKeys};

/// The name of the only proxy whose `X-Remote-User` header the API server trusts.
const FRONT_PROXY: &str = "front-proxy-client";

/// The socket on which etcd serves; no other process can take it, unlike a port.
pub(super) fn etcd_socket(dir: &Path) -> PathBuf {
    dir.join("client.sock")
}

/// The arguments of etcd, which runs in `dir`.
pub(super) fn etcd(dir: &Path) -> Vec<String> {
    // A member must announce addresses in this form; with a single member they are never dialled.
    let unused = "http://127.0.0.1:1";
    vec![
        "--name=only".to_owned(),
        format!("--data-dir={}", dir.join("data").display()),
        format!("--listen-client-urls=unix://{}", etcd_socket(dir).display()),
        format!("--advertise-client-urls={unused}"),
        // A relative socket in the working directory: etcd takes no path here.
        "--listen-peer-urls=unix://peer:0".to_owned(),
        format!("--initial-advertise-peer-urls={unused}"),
        format!("--initial-cluster=only={unused}"),
        // The data is thrown away after the run.
        "--unsafe-no-fsync".to_owned(),
        // The only member wins its election after this many milliseconds.
        "--heartbeat-interval=10".to_owned(),
        "--election-timeout=50".to_owned(),
    ]
}

/// The files that kube-apiserver reads.
#[derive(Debug)]
pub(super) struct ApiserverFiles {
    client_ca: PathBuf,
    requestheader_ca: PathBuf,
    serving: IdentityFiles,
    front_proxy: IdentityFiles,
    token_signing_key: PathBuf,
    token_verifying_key: PathBuf,
}

impl ApiserverFiles {
    /// Writes the certificates that `authority` signs, and those of a proxy authority of its own.
    pub(super) fn write(dir: &Path, authority: &Authority) -> Result<Self, ControlPlaneError> {
        let requestheader = Authority::new("cloudkeel-test-front-proxy-ca")?;
        let serving = authority.server()?;
        let front_proxy = requestheader.client(FRONT_PROXY, &[])?;
        let tokens = TokenKeys::new()?;
        let write = || {
            Ok(Self {
                client_ca: file(dir, "ca.crt", &authority.pem())?,
                requestheader_ca: file(dir, "requestheader-ca.crt", &requestheader.pem())?,
                serving: serving.write(dir, "serving")?,
                front_proxy: front_proxy.write(dir, "front-proxy")?,
                token_signing_key: file(dir, "tokens.key", &tokens.signing)?,
                token_verifying_key: file(dir, "tokens.pub", &tokens.verifying)?,
            })
        };
        write().map_err(ControlPlaneError::io("write the keys of kube-apiserver"))
    }

    pub(super) fn client_ca(&self) -> &Path {
        &self.client_ca
    }
}

fn file(dir: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    let path = dir.join(name);
    std::fs::write(&path, text)?;
    Ok(path)
}

/// The arguments of kube-apiserver.
pub(super) fn kube_apiserver(files: &ApiserverFiles, etcd_socket: &Path, port: u16) -> Vec<String> {
    let path = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    let mut arguments = vec![
        format!("--etcd-servers=unix://{}", etcd_socket.display()),
        format!("--secure-port={port}"),
        path("tls-cert-file", &files.serving.certificate),
        path("tls-private-key-file", &files.serving.key),
        path("client-ca-file", &files.client_ca),
        path("requestheader-client-ca-file", &files.requestheader_ca),
        format!("--requestheader-allowed-names={FRONT_PROXY}"),
        path("proxy-client-cert-file", &files.front_proxy.certificate),
        path("proxy-client-key-file", &files.front_proxy.key),
        path("service-account-signing-key-file", &files.token_signing_key),
        path("service-account-key-file", &files.token_verifying_key),
    ];
    arguments.extend(FIXED_APISERVER_FLAGS.map(str::to_owned));
    arguments
}

const FIXED_APISERVER_FLAGS: [&str; 10] = [
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    // A loopback address is not a valid endpoint of the Service `kubernetes`, so nothing maintains it.
    "--endpoint-reconciler-type=none",
    "--authorization-mode=Node,RBAC",
    "--service-cluster-ip-range=10.0.0.0/16",
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    // It would refuse every Pod, for no controller makes the default service accounts.
    "--disable-admission-plugins=ServiceAccount",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
];
