//! A cloud, a configuration for it, and managers as processes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use cloudkeel_testkit::cluster::{eventually, unique_name};
use cloudkeel_testkit::either_api::{EitherApi, RunningApi};
use cloudkeel_testkit::simulated_cloud::{
    MachineSpec, Permission, Served, Settings, SimulatedCloud,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::api::ListParams;
use kube::{Api, Client};
use tempfile::TempDir;

/// The credential of every world, each for its own project.
pub(crate) const TOKEN: &str = "world-token";

pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// The folder of this crate. Read at run time: a target folder that several clones share keeps what was
/// compiled in another one.
pub(crate) fn package() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR");
    folder.expect("tests run under cargo").into()
}

/// A cloud of its own, with a configuration, a kubeconfig and a lease that no other test uses.
pub(crate) struct World {
    pub(crate) cloud: SimulatedCloud,
    pub(crate) client: Client,
    pub(crate) id: String,
    /// The lease of its managers: its own, unless a test needs another.
    pub(crate) lease_name: String,
    served: Served,
    folder: TempDir,
    pub(crate) kubeconfig: PathBuf,
    /// It ends with its world, unless it is shared.
    api: Option<RunningApi>,
}

impl World {
    /// On the real API server.
    pub(crate) async fn new() -> Self {
        Self::on(EitherApi::Real).await
    }

    pub(crate) async fn on(api: EitherApi) -> Self {
        Self::with(api.run().await).await
    }

    pub(crate) async fn with(api: RunningApi) -> Self {
        let access = |id: &str| api.kubeconfig_for(id, &["system:masters"]);
        let world = Self::reached_by(api.client(), access).await;
        Self {
            api: Some(api),
            ..world
        }
    }

    /// In an existing cluster, with the kubeconfig that a name gets there.
    pub(crate) async fn reached_by(client: Client, access: impl FnOnce(&str) -> String) -> Self {
        let cloud = SimulatedCloud::new(Settings::default());
        let served = cloud.serve_on_loopback().await.expect("a port on loopback");
        let id = unique_name("world");
        // Provider IDs name the project, so no world mistakes another's Nodes for its own.
        cloud.add_project(&id);
        cloud.grant(TOKEN, &id, Permission::ReadWrite);
        let folder = TempDir::new().expect("a temporary folder");
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, access(&id)).expect("the kubeconfig is written");
        let world = Self {
            cloud,
            client,
            lease_name: id.clone(),
            id,
            served,
            folder,
            kubeconfig,
            api: None,
        };
        world.write_config(TOKEN);
        world
    }

    /// The text of a kubeconfig for a user in these groups, of a world with an API of its own.
    pub(crate) fn kubeconfig_of(&self, user: &str, groups: &[&str]) -> String {
        let api = self.api.as_ref().expect("an API of its own");
        api.kubeconfig_for(user, groups)
    }

    /// Only Services of this class belong to this world's cloud: all worlds share a cluster.
    pub(crate) fn class(&self) -> &str {
        &self.id
    }

    /// Only Nodes with this label belong to this world's cloud.
    pub(crate) fn label(&self) -> (&'static str, &str) {
        ("cloudkeel.test/world", &self.id)
    }

    pub(crate) fn lease(&self) -> &str {
        &self.lease_name
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("clouds.yaml")
    }

    pub(crate) fn write_config(&self, token: &str) {
        let (key, value) = self.label();
        let text = format!(
            "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: {value}\n  provider: local\n  \
             nodes: {{selector: \"{key}={value}\"}}\n  \
             loadBalancers: {{default: false, class: {value}}}\n  \
             config: {{endpoint: \"{}\", token: \"{token}\"}}\n",
            self.url(),
        );
        std::fs::write(self.config(), text).expect("the configuration is written");
    }

    /// A file of this content in the folder of this world.
    pub(crate) fn write_file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).expect("the file is written");
        path
    }

    /// Where its cloud is served.
    pub(crate) fn url(&self) -> String {
        self.served.url()
    }

    /// A place for the log of a manager.
    pub(crate) fn log_file(&self) -> PathBuf {
        let name = format!("{}.log", unique_name("manager"));
        self.folder.path().join(name)
    }

    /// A machine, by name.
    pub(crate) fn machine(&self, name: &str) -> u64 {
        let spec = MachineSpec::named(name).in_project(&self.id);
        let machine = self.cloud.add_machine(spec).expect("a machine");
        machine.id
    }

    /// A manager with these flags besides the usual ones.
    pub(crate) fn start(&self, more: &[&str]) -> Manager {
        let mut flags = self.flags();
        flags.extend(more.iter().map(ToString::to_string));
        Manager::start(&flags, self.log_file())
    }

    /// The usual flags.
    pub(crate) fn flags(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--authentication-kubeconfig={}", self.kubeconfig.display()),
            format!("--authorization-kubeconfig={}", self.kubeconfig.display()),
            format!("--cloud-config={}", self.config().display()),
            format!("--leader-elect-resource-name={}", self.lease()),
            "--secure-port=0".to_owned(),
            "-v=2".to_owned(),
        ]
    }

    /// The holder of the lease; empty if there is none.
    pub(crate) async fn holder(&self) -> String {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-system");
        let lease = leases
            .get_opt(self.lease())
            .await
            .expect("leases can be read");
        let spec = lease.and_then(|lease| lease.spec);
        spec.and_then(|spec| spec.holder_identity)
            .unwrap_or_default()
    }

    /// Waits until another holder than `but` has the lease.
    pub(crate) async fn another_holder(&self, but: &str) -> String {
        eventually("another leader", DEADLINE, || async {
            let holder = self.holder().await;
            (!holder.is_empty() && holder != but).then_some(holder)
        })
        .await
    }

    /// The events about a Node with this reason.
    pub(crate) async fn events_about(&self, node: &str, reason: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let about = format!("involvedObject.name={node},reason={reason}");
        let found = events.list(&ListParams::default().fields(&about)).await;
        found.expect("events can be listed").items
    }

    pub(crate) async fn node(&self, name: &str) -> Node {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.get(name).await.expect("the node is there")
    }
}

/// A running manager. It is killed when dropped.
pub(crate) struct Manager {
    child: Child,
    log: PathBuf,
}

impl Manager {
    fn start(flags: &[String], log: PathBuf) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
        program.args(flags);
        Self::spawn(program, log)
    }

    /// A manager by this command, whose log is what it prints.
    pub(crate) fn spawn(mut program: Command, log: PathBuf) -> Self {
        let output = File::create(&log).expect("a log file");
        let errors = output.try_clone().expect("a second handle");
        let child = program
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .expect("the manager starts");
        Self { child, log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn log_path(&self) -> &Path {
        &self.log
    }

    /// Sends a signal by name, as `kill` does.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success(), "{name} was sent");
    }

    /// Waits for the end of the process.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let log = self.log.clone();
        let child = &mut self.child;
        let ended = tokio::time::timeout(DEADLINE, async {
            loop {
                if let Some(status) = child.try_wait().expect("the process can be asked") {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        ended.await.unwrap_or_else(|_elapsed| {
            let log = std::fs::read_to_string(log).unwrap_or_default();
            panic!("the manager did not end; its log:\n{log}")
        })
    }

    /// Waits until the log says this.
    pub(crate) async fn wait_for_log(&self, text: &str) {
        eventually(
            &format!("log line {text:?} in {}", self.log_path().display()),
            DEADLINE,
            || async { self.log().contains(text) },
        )
        .await;
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the manager ---\n{}", self.log());
        }
    }
}
