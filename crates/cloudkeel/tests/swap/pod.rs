//! A process that finds what a container of a Pod finds: its arguments, its environment, and the files of
//! its ServiceAccount in their place.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitCode};

use cloudkeel_testkit::control_plane::ControlPlane;

use crate::account::Account;
use crate::harness::{Manager, World};
use crate::stand_ins;

/// Where the process finds its arguments, as JSON.
const ARGUMENTS: &str = "SWAP_ARGUMENTS";

/// In a mount namespace of its own, with the ServiceAccount where every Pod has it.
const AS_IN_A_POD: &str = "\
    mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount && \
    cp \"$0\"/* /run/secrets/kubernetes.io/serviceaccount/ && exec \"$@\"";

/// Runs a program as a container of a Pod with this account: with nothing in its environment but what
/// every container has there. The folder is for the files of the account.
pub(crate) async fn container(
    plane: &ControlPlane,
    account: &Account,
    folder: &Path,
    program: impl AsRef<OsStr>,
) -> Command {
    let folder = folder.join("service-account");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, content) in [
        ("ca.crt", plane.ca_pem().to_owned()),
        ("namespace", "kube-system".to_owned()),
        ("token", account.token().await),
    ] {
        std::fs::write(folder.join(name), content).expect("the file is written");
    }
    let url = plane.url();
    let (host, port) = url
        .trim_start_matches("https://")
        .trim_end_matches('/')
        .rsplit_once(':')
        .expect("host and port");
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c", AS_IN_A_POD])
        .arg(folder)
        .arg(program)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KUBERNETES_SERVICE_HOST", host)
        .env("KUBERNETES_SERVICE_PORT", port);
    command
}

/// Starts the manager with the stand-ins, exactly these arguments, the first of which is its name, and
/// this environment.
pub(crate) async fn start(
    world: &World,
    account: &Account,
    arguments: &[String],
    env: &BTreeMap<String, String>,
) -> Manager {
    let plane = ControlPlane::shared().await;
    let folder = world.config();
    let folder = folder.parent().expect("a file is in a folder");
    let this = std::env::current_exe().expect("this very program");
    let mut program = container(plane, account, folder, this).await;
    program
        .args(["--exact", "--ignored", "--nocapture", "pod::the_manager"])
        .env(ARGUMENTS, serde_json::json!(arguments).to_string())
        .envs(env);
    Manager::spawn(program, world.log_file())
}

/// Not a test: the process that [`start`] starts. It succeeds if the manager does.
#[test]
#[ignore = "not a test: the process that the tests here start"]
fn the_manager() {
    let arguments = std::env::var(ARGUMENTS).expect("started by a test");
    let arguments: Vec<String> = serde_json::from_str(&arguments).expect("a list of words");
    let arguments = arguments.into_iter().map(OsString::from);
    let ended = cloudkeel_manager::run::main(arguments, &stand_ins::registry(), &[]);
    assert_eq!(ended, ExitCode::SUCCESS);
}

/// The lines of a log of this level or worse.
pub(crate) fn lines(manager: &Manager, levels: &[&str]) -> Vec<String> {
    let log = manager.log();
    log.lines()
        .filter(|line| {
            let level = line.split_whitespace().nth(1);
            level.is_some_and(|level| levels.contains(&level))
        })
        .map(str::to_owned)
        .collect()
}
