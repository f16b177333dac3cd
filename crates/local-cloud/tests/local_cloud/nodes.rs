//! Machines that follow the Nodes of a cluster.

use std::net::Ipv4Addr;

use tempfile::NamedTempFile;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::lab::{DEADLINE, Lab};

#[tokio::test]
async fn nodes_are_watched_until_the_cloud_ends() {
    // An API server that listens and never says anything.
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let server = server.expect("a port");
    let address = server.local_addr().expect("an address");
    let kubeconfig = NamedTempFile::new().expect("a file");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, users: [{{name: u, user: {{}}}}], \
         clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}], \
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]}}"
    );
    std::fs::write(kubeconfig.path(), text).expect("written");
    let lab = Lab::with(|options| {
        options.machines_from_nodes = true;
        options.kubeconfig = Some(kubeconfig.path().to_owned());
    })
    .await;
    let accepted = timeout(DEADLINE, server.accept()).await;
    let (mut watcher, _) = accepted.expect("a watcher in time").expect("a watcher");
    let mut question = [0; 17];
    timeout(DEADLINE, watcher.read_exact(&mut question))
        .await
        .expect("a question in time")
        .expect("a question");
    assert_eq!(&question, b"GET /api/v1/nodes");
    lab.local.close().await;
    let mut rest = Vec::new();
    let leaving = timeout(DEADLINE, watcher.read_to_end(&mut rest));
    let left = leaving.await.expect("it leaves with the cloud");
    left.expect("a good end");
}
