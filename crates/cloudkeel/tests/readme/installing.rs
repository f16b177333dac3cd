//! The commands of the pages on installing, as they stand there, on a real API server.

use std::path::{Path, PathBuf};
use std::process::Command;

use cloudkeel_testkit::control_plane::{ControlPlane, Tool, provide};
use tempfile::TempDir;

use crate::shell::{printed, shell, workspace};

pub(crate) const INSTALL: &str = "helm install cloudkeel deploy/chart/cloudkeel --namespace kube-system \
                                  --set provider=hcloud --set image.repository=registry.example/cloudkeel";
pub(crate) const UPGRADE: &str = "helm upgrade cloudkeel deploy/chart/cloudkeel --namespace kube-system --reuse-values \
                                  --set image.tag=0.1.0";
pub(crate) const ROLLED_OUT: &str = "kubectl -n kube-system rollout status daemonset/cloudkeel";
pub(crate) const ROLL_BACK: &str = "helm rollback cloudkeel --namespace kube-system";
pub(crate) const STATIC_POD: &str = "helm template cloudkeel deploy/chart/cloudkeel --namespace kube-system \
                                     --set kind=StaticPod --show-only templates/static-pod.yaml \
                                     > /etc/kubernetes/manifests/cloudkeel.yaml";
pub(crate) const SECRET: &str =
    "kubectl -n kube-system create secret generic cloudkeel-credentials --from-file=token";
pub(crate) const APPLY: &str = "kubectl apply -k deploy/manifests";
pub(crate) const CLUSTER_UID: &str =
    "kubectl get namespace kube-system -o jsonpath='{.metadata.uid}'";
pub(crate) const VERSION: &str = "cloudkeel version";
pub(crate) const VERSION_AS_JSON: &str = "cloudkeel version --output json";
pub(crate) const HELP: &str = "cloudkeel --help";
pub(crate) const REPLACED: &str = "cloudkeel providers --replaces";
pub(crate) const IN_BASH: &str = "source <(cloudkeel completion bash)";
pub(crate) const FOR_ZSH: &str = "cloudkeel completion zsh > \"${fpath[1]}/_cloudkeel\"";
pub(crate) const FOR_FISH: &str =
    "cloudkeel completion fish > ~/.config/fish/completions/cloudkeel.fish";

/// An administrator of a cluster, with a token in the folder of the repository's `deploy`.
struct Administrator {
    home: TempDir,
    kubeconfig: PathBuf,
    path: String,
    _control_plane: ControlPlane,
}

impl Administrator {
    async fn new() -> Self {
        let control_plane = ControlPlane::start().await.expect("a control plane");
        let home = TempDir::new().expect("a folder");
        std::os::unix::fs::symlink(workspace().join("deploy"), home.path().join("deploy"))
            .expect("a link");
        std::fs::write(home.path().join("token"), "secret").expect("a token");
        let mut path = Vec::new();
        for tool in [Tool::Kubectl, Tool::Helm] {
            let program = provide(tool).await.expect("kubectl and helm").path;
            path.push(program.parent().expect("a folder").display().to_string());
        }
        Self {
            kubeconfig: control_plane.kubeconfig_for("administrator", &["system:masters"]),
            path: path.join(":"),
            home,
            _control_plane: control_plane,
        }
    }

    fn run(&self, line: &str) -> String {
        let mut command = shell(line, self.home.path());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path));
        command.env("KUBECONFIG", &self.kubeconfig);
        printed(command)
    }

    /// A field of the `DaemonSet`.
    fn daemon_set(&self, field: &str) -> String {
        self.run(&format!(
            "kubectl -n kube-system get daemonset cloudkeel -o jsonpath='{{{field}}}'"
        ))
    }

    /// No controller runs that would roll it out.
    fn roll_out(&self) {
        let generation = self.daemon_set(".metadata.generation");
        self.run(&format!(
            "kubectl -n kube-system patch daemonset cloudkeel --subresource=status --type=merge \
             --patch '{{\"status\":{{\"observedGeneration\":{generation},\"desiredNumberScheduled\":0}}}}'"
        ));
    }
}

#[tokio::test]
async fn the_chart_is_installed_upgraded_and_rolled_back() {
    const IMAGE: &str = ".spec.template.spec.containers[0].image";
    let administrator = Administrator::new().await;
    let said = administrator.run(INSTALL);
    assert!(said.contains("STATUS: deployed"), "{said}");
    let image = administrator.daemon_set(IMAGE);
    assert!(image.starts_with("registry.example/cloudkeel:"), "{image}");
    // A tag of its own, so that the upgrade changes something, and there is a way back.
    let before = UPGRADE.replace("image.tag=0.1.0", "image.tag=0.0.9");
    administrator.run(&before);
    administrator.run(UPGRADE);
    assert_eq!(
        administrator.daemon_set(IMAGE),
        "registry.example/cloudkeel:0.1.0"
    );
    administrator.roll_out();
    let said = administrator.run(ROLLED_OUT);
    assert!(said.contains("successfully rolled out"), "{said}");
    administrator.run(ROLL_BACK);
    assert_eq!(
        administrator.daemon_set(IMAGE),
        "registry.example/cloudkeel:0.0.9"
    );
    let place = administrator.home.path().join("cloudkeel.yaml");
    let line = STATIC_POD.replace(
        "/etc/kubernetes/manifests/cloudkeel.yaml",
        &place.display().to_string(),
    );
    administrator.run(&line);
    let pod = std::fs::read_to_string(place).expect("a Pod");
    assert!(pod.contains("kind: Pod\n"), "{pod}");
}

#[tokio::test]
async fn the_manifests_are_applied_beside_a_secret() {
    let administrator = Administrator::new().await;
    administrator.run(SECRET);
    administrator.run(APPLY);
    let mounted =
        administrator.daemon_set(".spec.template.spec.volumes[?(@.secret)].secret.secretName");
    assert_eq!(mounted, "cloudkeel-credentials");
    let uid = administrator.run(CLUSTER_UID);
    assert_eq!(uid.split('-').count(), 5, "{uid}");
}

#[test]
fn the_program_describes_itself() {
    let home = TempDir::new().expect("a folder");
    let run = |line: &str| printed(shell(line, home.path()));
    let version = env!("CARGO_PKG_VERSION");
    assert!(run(VERSION).contains(version));
    let described: serde_json::Value = serde_json::from_str(&run(VERSION_AS_JSON)).expect("JSON");
    assert!(described.to_string().contains(version), "{described}");
    assert!(run(HELP).to_lowercase().contains("deprecated"));
    assert!(run(REPLACED).contains("hcloud-cloud-controller-manager"));
}

/// bash stands in for zsh and fish, which have the same redirections: the files are read by their own shells only.
#[test]
fn completions_are_put_where_shells_read_them() {
    let home = TempDir::new().expect("a folder");
    let fish = home.path().join(".config/fish/completions");
    std::fs::create_dir_all(&fish).expect("a folder");
    let program = Path::new(env!("CARGO_BIN_EXE_cloudkeel"));
    let folder = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!("{IN_BASH}\ncomplete -p cloudkeel\nfpath=(none ~)\n{FOR_ZSH}\n{FOR_FISH}");
    let mut bash = Command::new("bash");
    bash.args(["-ec", &script])
        .env("PATH", format!("{folder}:{path}"))
        .env("HOME", home.path());
    let said = printed(bash);
    assert!(said.starts_with("complete "), "{said}");
    for (file, begin) in [
        (home.path().join("_cloudkeel"), "#compdef cloudkeel"),
        (fish.join("cloudkeel.fish"), "complete -c cloudkeel"),
    ] {
        let script = std::fs::read_to_string(&file).expect("a script");
        assert!(script.contains(begin), "{}", file.display());
    }
}
