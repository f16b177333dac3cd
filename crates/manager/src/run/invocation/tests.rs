use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, CloudProvider, Descriptor, Documented as _, FlagKey, Problems, ProviderContext,
    ProviderFactory, ProviderInput,
};

use super::*;

const USER_AGENT: FlagKey<String> = FlagKey::new("user-agent", "Put in front of our own.");

/// A provider of which only the description matters.
struct Described {
    name: &'static str,
    replaces: &'static [&'static str],
}

#[async_trait]
impl ProviderFactory for Described {
    fn descriptor(&self) -> Descriptor {
        let keys = if self.name == "openstack" {
            vec![USER_AGENT.doc()]
        } else {
            vec![]
        };
        Descriptor {
            name: self.name,
            summary: "A description.",
            replaces: self.replaces,
            capabilities: vec![],
            keys,
        }
    }

    async fn build(
        &self,
        _input: ProviderInput,
        _context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        Err(Problems::new().into())
    }
}

fn registry() -> Registry {
    let known = [
        ("hcloud", &["hcloud-cloud-controller-manager"][..]),
        ("openstack", &["openstack-cloud-controller-manager"]),
    ];
    known
        .into_iter()
        .fold(Registry::new(), |registry, (name, replaces)| {
            registry.with(Described { name, replaces }).unwrap()
        })
}

fn call(line: &str) -> Result<Invocation, String> {
    let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
    read_invocation(&arguments, &registry(), &[])
}

fn manager(line: &str) -> Start {
    match call(line) {
        Ok(Invocation::Manager(start)) => *start,
        Ok(Invocation::Print(text)) => panic!("{line}: printed {text}"),
        Ok(Invocation::Command(command)) => panic!("{line}: ran {command:?}"),
        Err(problem) => panic!("{line}: {problem}"),
    }
}

#[test]
fn the_command_line_of_the_hetzner_chart_starts_the_manager() {
    let start = manager(
        "/bin/hcloud-cloud-controller-manager --allow-untagged-cloud --cloud-provider=hcloud \
         --feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true \
         --route-reconciliation-period=30s --webhook-secure-port=0 --allocate-node-cidrs=true \
         --cluster-cidr=10.244.0.0/16 --leader-elect=false",
    );
    assert_eq!(start.setup.clouds[0].provider, "hcloud");
    assert!(start.options.generic.allow_untagged_cloud && !start.options.election.enabled);
}

#[test]
fn the_command_line_of_the_openstack_manifest_starts_the_manager() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cloud.conf");
    std::fs::write(&config, "[Global]\nauth-url=http://127.0.0.1/v3\n").unwrap();
    let start = manager(&format!(
        "/bin/openstack-cloud-controller-manager --v=1 --cluster-name=kubernetes \
         --cloud-config={} --cloud-provider=openstack --use-service-account-credentials=false \
         --controllers=cloud-node,cloud-node-lifecycle,route,service \
         --bind-address=127.0.0.1 --user-agent=a --user-agent=b",
        config.display()
    ));
    assert_eq!(start.setup.clouds[0].provider, "openstack");
    assert_eq!(start.options.provider_flags["user-agent"], ["a", "b"]);
}

#[test]
fn the_name_of_a_go_binary_selects_its_cloud() {
    let start = manager("/bin/hcloud-cloud-controller-manager");
    assert_eq!(start.setup.clouds[0].provider, "hcloud");
    let start = manager("openstack-cloud-controller-manager --leader-elect");
    assert_eq!(start.setup.clouds[0].provider, "openstack");
    let problem = call("cloudkeel").err().unwrap();
    assert!(
        problem.contains("name one of hcloud, openstack"),
        "{problem}"
    );
}

#[test]
fn a_first_word_without_dashes_is_a_command() {
    assert!(matches!(
        call("cloudkeel providers"),
        Ok(Invocation::Command(_))
    ));
    assert!(matches!(
        call("cloudkeel providers --help"),
        Ok(Invocation::Print(_))
    ));
    assert!(matches!(call("cloudkeel --help"), Ok(Invocation::Print(_))));
    let problem = call("cloudkeel provdiers").err().unwrap();
    assert!(problem.contains("did you mean \"providers\"?"), "{problem}");
    let problem = call("cloudkeel providers --nonsense").err().unwrap();
    assert!(problem.contains("--nonsense"), "{problem}");
}

#[test]
fn flags_without_effect_are_noted() {
    let start = manager("cloudkeel --cloud-provider=hcloud --node_sync_period=10s");
    assert_eq!(start.notes.len(), 1, "{:?}", start.notes);
}
