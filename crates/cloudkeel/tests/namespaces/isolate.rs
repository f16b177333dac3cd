//! Runs the test in namespaces of its own. Whatever it makes there, processes, links and routes, the
//! kernel takes away with them, however it ends.

use std::path::PathBuf;
use std::process::ExitCode;

use cloudkeel_testkit::control_plane::{Tool, provide};
use cloudkeel_testkit::namespaces::Alone;

const TEST: Alone = Alone {
    name: "one_command_gives_the_services_of_a_cluster_addresses_that_answer",
    // A network, mounts and processes that no other process sees, and that end with their first process.
    unshared: &[
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ],
    needs: &[
        // Of the package iproute2.
        ("ip", "-V"),
        ("mount", "--version"),
        ("curl", "--version"),
    ],
};

pub(crate) async fn run() -> ExitCode {
    TEST.run(passes()).await
}

async fn passes() -> bool {
    // There is no way to the outside from within.
    let servers = control_plane().await;
    // All processes there count from 1, and name their files by that.
    let files = tempfile::tempdir().expect("a folder");
    let mut inside = TEST.inside().expect("this program");
    let status = inside
        .env("KUBEBUILDER_ASSETS", servers)
        .env("TMPDIR", files.path())
        .status();
    status.expect("unshare starts").success()
}

/// The folder with etcd and kube-apiserver.
async fn control_plane() -> PathBuf {
    let etcd = provide(Tool::Etcd).await.expect("etcd").path;
    let apiserver = provide(Tool::KubeApiserver).await.expect("kube-apiserver");
    let folder = etcd.parent().expect("a folder").to_owned();
    assert_eq!(apiserver.path.parent(), Some(folder.as_path()));
    folder
}
