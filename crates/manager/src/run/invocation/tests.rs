use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, CloudProvider, ConfigSource, Descriptor, Documented as _, FlagKey, Problem,
    Problems, ProvidedController, ProviderContext, ProviderFactory, ProviderInput,
};

use super::*;

const USER_AGENT: FlagKey<String> = FlagKey::new("user-agent", "Put in front of our own.");

/// A provider with nothing but a description.
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

    fn controllers(&self) -> &'static [ProvidedController] {
        &[ProvidedController {
            name: "tagging",
            on_by_default: false,
            watches_services: false,
        }]
    }

    fn preset_flags(&self) -> &'static [&'static str] {
        match self.name {
            "hcloud" => &["--authentication-skip-lookup"],
            _ => &[],
        }
    }

    fn check(&self, input: &ProviderInput) -> Result<(), Problems> {
        let problem = match &input.config {
            ConfigSource::Own(config) if config.get("wrong").is_some() => "wrong",
            ConfigSource::None if input.env.contains_key("WRONG") => "WRONG",
            _ => return Ok(()),
        };
        Err(Problem::new(problem, "expected something else").into())
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

const ADDED: ExtraCommand = ExtraCommand {
    name: "added",
    command: || clap::Command::new("added").about("Does what was added"),
    run: |_| ExitCode::SUCCESS,
};

fn call(line: &str) -> Result<Invocation, String> {
    let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
    read_invocation(&arguments, &registry(), &[ADDED])
}

fn manager(line: &str) -> Start {
    match call(line) {
        Ok(Invocation::Manager(start)) => *start,
        Ok(Invocation::Print(text)) => panic!("{line}: printed {text}"),
        Ok(Invocation::Command(command)) => panic!("{line}: ran {command:?}"),
        Ok(Invocation::Plan(..)) => panic!("{line}: planned"),
        Err(problem) => panic!("{line}: {problem}"),
    }
}

#[test]
fn a_plan_takes_the_flags_of_the_manager_and_the_cloud_of_its_name() {
    let line =
        "/bin/hcloud-cloud-controller-manager plan --orphans --cluster-name=c --timeout=5s -o json";
    let Ok(Invocation::Plan(args, start)) = call(line) else {
        panic!("{line}: no plan");
    };
    assert!(args.orphans && !args.apply);
    assert_eq!(args.timeout.as_secs(), 5);
    assert_eq!(start.setup.clouds[0].provider, "hcloud");
    assert_eq!(start.options.generic.cluster_name, "c");
}

#[test]
fn a_plan_that_would_remove_what_was_not_asked_for_is_refused() {
    for (arguments, expected) in [
        ("--apply", "--orphans or --teardown"),
        ("--orphans --yes", "--apply"),
        ("--orphans --teardown", "cannot be used with"),
        ("--orphans --apply --force", "--teardown"),
        ("--timeout=soon", "invalid value 'soon'"),
        ("--cluster-nam=c", "--cluster-nam"),
    ] {
        let line = format!("cloudkeel plan --cloud-provider=hcloud {arguments}");
        let problem = call(&line)
            .err()
            .unwrap_or_else(|| panic!("{line}: accepted"));
        assert!(problem.contains(expected), "{line}: {problem}");
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
fn the_flags_that_a_go_binary_gives_itself_hold_under_its_name_unless_given() {
    let skips = |line: &str| manager(line).options.authentication.skip_lookup;
    assert!(skips("/bin/hcloud-cloud-controller-manager"));
    assert!(skips("/cloudkeel hcloud-cloud-controller-manager --v=1"));
    let given = "/bin/hcloud-cloud-controller-manager --authentication-skip-lookup=false";
    assert!(!skips(given));
    assert!(!skips("cloudkeel --cloud-provider=hcloud"));
    assert!(!skips("/bin/openstack-cloud-controller-manager"));
}

#[test]
fn the_name_of_a_go_ccm_may_come_as_the_first_argument() {
    let start = manager("/cloudkeel /bin/openstack-cloud-controller-manager --v=1");
    assert_eq!(start.implied, Some("openstack"));
    assert_eq!(start.setup.clouds[0].provider, "openstack");
    assert_eq!(start.options.logging.verbosity, 1);
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
fn a_command_that_the_binary_brings_is_known_by_name() {
    let problem = call("cloudkeel aded").err().unwrap();
    assert!(problem.contains("did you mean \"added\"?"), "{problem}");
    assert!(problem.contains("plan, added;"), "{problem}");
}

#[test]
fn flags_without_effect_are_noted() {
    let start = manager("cloudkeel --cloud-provider=hcloud --node_sync_period=10s");
    assert_eq!(start.notes.len(), 1, "{:?}", start.notes);
}

fn checked(line: &str, environment: &Environment) -> Result<(), Vec<String>> {
    let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
    let read = read_and_check(&arguments, &registry(), &[ADDED], environment);
    read.map(drop)
        .map_err(|problem| problem.lines().map(str::to_owned).collect())
}

/// A valid kubeconfig.
fn kubeconfig(folder: &Path) -> String {
    let path = folder.join("kubeconfig");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, \
                user: a}}]\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: a, \
                user: {}}]\n";
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn everything_that_is_wrong_is_reported_at_once_whatever_says_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("clouds.yaml");
    let text = "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n\
                - {name: north, provider: hcloud, config: {wrong: 1}}\n\
                - {name: south, provider: openstack, config: {wrong: 1}}\n";
    std::fs::write(&config, text).unwrap();
    let line = format!(
        "cloudkeel --cloud-config={} --kubeconfig=/nowhere --controllers=clod-node,*,tagging \
         --secure-prot=1 --leader-elect-lease-duration=soon",
        config.display()
    );
    let wrong = checked(&line, &Environment::default()).unwrap_err();
    for part in [
        "--secure-prot",
        "--leader-elect-lease-duration",
        "cloud north: wrong: expected something else",
        "cloud south: wrong: expected something else",
    ] {
        let times = wrong.iter().filter(|line| line.contains(part)).count();
        assert_eq!(times, 1, "{part}: {wrong:#?}");
    }
    // Problems that depend on unreadable flags are reported as soon as the flags can be read.
    let line = line.replace("--leader-elect-lease-duration=soon", "");
    let wrong = checked(&line, &Environment::default()).unwrap_err();
    for part in [
        "--secure-prot",
        "--controllers: ",
        "\"cloud-node\"",
        "cloud north: ",
        "cloud south: ",
        "--kubeconfig: \"/nowhere\"",
    ] {
        assert!(
            wrong.iter().any(|line| line.contains(part)),
            "{part}: {wrong:#?}"
        );
    }
    assert!(
        !wrong.iter().any(|line| line.contains("tagging")),
        "{wrong:#?}"
    );
}

#[test]
fn the_environment_is_checked_and_what_is_right_starts() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(folder.path());
    let environment = |names: &[&str]| Environment {
        env: names
            .iter()
            .map(|name| ((*name).to_owned(), String::new()))
            .collect(),
        kubeconfig: Some(kubeconfig.clone().into()),
    };
    let line = "cloudkeel --cloud-provider=hcloud";
    assert_eq!(checked(line, &environment(&[])), Ok(()));
    let wrong = checked(line, &environment(&["WRONG"])).unwrap_err();
    assert_eq!(wrong, ["cloud hcloud: WRONG: expected something else"]);
    let nowhere = checked(line, &Environment::default()).unwrap_err();
    assert_eq!(nowhere.len(), 1, "{nowhere:?}");
    assert!(
        nowhere[0].contains("$KUBERNETES_SERVICE_HOST is not set here"),
        "{nowhere:?}"
    );
}

#[test]
fn only_the_first_argument_asks_for_a_command() {
    let extra = [ExtraCommand {
        name: "emulate",
        command: || clap::Command::new("emulate"),
        run: |_| ExitCode::SUCCESS,
    }];
    for (line, asked) in [
        ("cloudkeel", false),
        ("cloudkeel emulate hetzner", true),
        ("cloudkeel --cloud-provider=local emulate", false),
        ("emulate", false),
    ] {
        let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(extra_command(&arguments, &extra).is_some(), asked, "{line}");
    }
}
