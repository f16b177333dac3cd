//! What operators write: flags, environment, files.

use std::collections::BTreeMap;
use std::path::Path;

use cloudkeel_api::{ConfigSource, KeyPlace, Problems, ProviderInput};
use cloudkeel_local_cloud::simulated_cloud::{MachineSpec, Settings, SimulatedCloud, Snapshot};
use cloudkeel_manager::config::load;
use cloudkeel_manager::flags::{FlagTable, parse};
use cloudkeel_manager::options::{FeatureGates, Options};
use cloudkeel_provider_digitalocean::Config as DigitalOceanConfig;
use cloudkeel_provider_hetzner::Config as HetznerConfig;
use cloudkeel_provider_local::Config as LocalConfig;
use cloudkeel_provider_vsphere::Config as VSphereConfig;
use kube::config::Kubeconfig;
use tempfile::NamedTempFile;

use super::{bytes, just, no_words, owned, paused, registry, text};
use crate::target::{Reader, Target};

pub(super) const TARGETS: &[Target] = &[
    Target::new(
        "command-line",
        "flags of the manager, with feature gates, controllers, ranges and log levels",
        command_lines,
        flag_words,
        command_line,
    ),
    Target::new(
        "cloud-file",
        "our configuration file, and those of Go programs",
        cloud_files,
        config_words,
        cloud_file,
    ),
    Target::new(
        "environment",
        "environment variables of providers",
        environments,
        config_words,
        || just(environment),
    ),
    Target::new(
        "kubeconfig",
        "kubeconfig files",
        kubeconfigs,
        || {
            owned(&[
                "clusters:",
                "users:",
                "contexts:",
                "exec:",
                "current-context:",
            ])
        },
        || {
            just(|input| {
                let _ = Kubeconfig::from_yaml(&text(input));
            })
        },
    ),
    Target::new(
        "state-file",
        "the state file of the local cloud",
        snapshots,
        no_words,
        state_file,
    ),
];

fn command_lines() -> Vec<Vec<u8>> {
    bytes(&[
        "--cloud-provider=hcloud\n--feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true\n-v=4",
        "--controllers=*,-route\n--cluster-cidr=10.244.0.0/16,fd00::/48\n--allocate-node-cidrs=true",
        "--leader-elect=false\n--node-monitor-period\n5s\n--vmodule=a=1,b=2",
        "--secure-port=10258\n--bind-address=::\n--tls-sni-cert-key=a,b:c\n--tls-min-version=VersionTLS12",
        "--kubeconfig=/x\n--concurrent-service-syncs=5\n--",
    ])
}

fn flag_words() -> Vec<String> {
    let table = FlagTable::new(&registry().descriptors());
    let flags = table
        .rows()
        .iter()
        .map(|row| format!("--{}=", row.doc.name));
    let gates = FeatureGates::known().iter();
    let gates = gates.map(|gate| format!("{}=true,", gate.name));
    flags
        .chain(gates)
        .chain(owned(&["\n", "AllAlpha=true"]))
        .collect()
}

fn command_line() -> Reader {
    let descriptors = registry().descriptors();
    let table = FlagTable::new(&descriptors);
    Box::new(move |input| {
        let line = parse(&table, text(input).lines().map(str::to_owned));
        let read = line.and_then(|line| Options::read(&line, &descriptors));
        if let Err(problems) = read {
            for problem in problems.iter() {
                let _ = problem.to_string();
            }
        }
        Ok(())
    })
}

fn cloud_files() -> Vec<Vec<u8>> {
    bytes(&[
        "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: a\n  provider: hcloud\n  \
         nodes: {selector: \"pool=web\"}\n  config: {token: t, network: kube}\n- name: b\n  provider: local\n  \
         loadBalancers: {default: true, class: b, targets: {}}\n  \
         config: {endpoint: \"http://127.0.0.1:1\", token: x, timeout: 5s}\n",
        "{\"apiVersion\": \"cloudkeel.dev/v1\", \"kind\": \"CloudConfig\", \"clouds\": [{\"name\": \"a\", \
         \"provider\": \"local\", \"config\": {\"endpoint\": \"http://127.0.0.1:1\", \"tokenFile\": \"/none\"}}]}",
        "[Global]\nuser = \"u\"\npassword = \"p\"\n[VirtualCenter \"1.2.3.4\"]\ndatacenters = d\n",
        "a: &a [1, 2]\nb: [*a, *a]\nc: !!binary aGk=\n",
    ])
}

fn config_words() -> Vec<String> {
    let keys = registry().descriptors().into_iter().flat_map(|d| d.keys);
    let keys = keys.filter(|key| key.place != KeyPlace::Annotation);
    let keys = keys.flat_map(|key| [format!("{}: ", key.name), format!("{}=", key.name)]);
    keys.chain(owned(&["clouds:", "provider: ", "config:", "- ", "\n  "]))
        .collect()
}

fn cloud_file() -> Reader {
    let registry = registry();
    let descriptors = registry.descriptors();
    let file = NamedTempFile::new().expect("a temporary file");
    let flag = format!("--cloud-config={}", file.path().display());
    let line = parse(&FlagTable::new(&descriptors), [flag]).expect("a flag");
    let options = Options::read(&line, &descriptors).expect("options");
    Box::new(move |input| {
        std::fs::write(file.path(), input).map_err(|error| error.to_string())?;
        // The second as a Go program's name would have it.
        for implied in [None, Some("local")] {
            match load(&options.generic, implied, &registry) {
                Ok(setup) => setup
                    .clouds
                    .iter()
                    .for_each(|cloud| read_cloud(&cloud.config)),
                Err(error) => drop(error.to_string()),
            }
        }
        Ok(())
    })
}

fn read_cloud(config: &ConfigSource) {
    if let Err(problems) = LocalConfig::read(config) {
        let _ = problems.to_string();
    }
    let input = ProviderInput {
        config: config.clone(),
        ..ProviderInput::default()
    };
    for problems in problems_in(&input) {
        let _ = problems.to_string();
    }
    if let Err(problems) = VSphereConfig::read(&input) {
        let _ = problems.to_string();
    }
}

/// What each provider that reads an environment finds wrong.
fn problems_in(input: &ProviderInput) -> impl Iterator<Item = Problems> {
    let digitalocean = DigitalOceanConfig::read(input).err();
    let hetzner = HetznerConfig::read(input).err();
    digitalocean.into_iter().chain(hetzner)
}

fn environments() -> Vec<Vec<u8>> {
    bytes(&[
        "HCLOUD_TOKEN=t\nHCLOUD_NETWORK=kube\nHCLOUD_LOAD_BALANCERS_ENABLED=true\nROBOT_ENABLED=true",
        "HCLOUD_TOKEN=t\nHCLOUD_LOAD_BALANCERS_LOCATION=fsn1\nHCLOUD_DEBUG=false\nROBOT_RATE_LIMIT_WAIT_TIME=5m",
        "DO_ACCESS_TOKEN=t\nDO_API_RATE_LIMIT_QPS=1.5\nDEFAULT_LB_TYPE=REGIONAL\nPUBLIC_ACCESS_FIREWALL_TAGS=a,b",
        "HCLOUD_TOKEN=t\nHCLOUD_INSTANCES_ADDRESS_FAMILY=dualstack\nHCLOUD_METRICS_ADDRESS=:8233",
    ])
}

fn environment(input: &[u8]) {
    let text = text(input);
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let env: BTreeMap<_, _> = pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let config = ConfigSource::File {
        path: Path::new("/none").to_owned(),
        text: text.to_string(),
    };
    for config in [ConfigSource::None, config] {
        let input = ProviderInput {
            config,
            env: env.clone(),
            ..ProviderInput::default()
        };
        for problems in problems_in(&input) {
            let _ = problems.to_string();
        }
    }
}

fn kubeconfigs() -> Vec<Vec<u8>> {
    bytes(&[
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters:\n- name: a\n  cluster: {server: \"https://x\"}\n\
         users:\n- name: u\n  user: {token: t}\ncontexts:\n- name: a\n  context: {cluster: a, user: u}\n",
    ])
}

fn snapshots() -> Vec<Vec<u8>> {
    let runtime = paused();
    let _inside = runtime.enter();
    let cloud = SimulatedCloud::new(Settings::default());
    for name in ["node-1", "node-2"] {
        cloud
            .add_machine(MachineSpec::named(name))
            .expect("a machine");
    }
    let snapshot = serde_json::to_vec(&cloud.snapshot()).expect("a snapshot");
    vec![snapshot]
}

fn state_file() -> Reader {
    let runtime = paused();
    Box::new(move |input| {
        let _inside = runtime.enter();
        let Ok(snapshot) = serde_json::from_slice::<Snapshot>(input) else {
            return Ok(());
        };
        let restore = |snapshot| {
            SimulatedCloud::restore(Settings::default(), SimulatedCloud::REGION, snapshot)
        };
        let Ok(cloud) = restore(snapshot) else {
            return Ok(());
        };
        match restore(cloud.snapshot()) {
            Ok(_) => Ok(()),
            Err(why) => Err(format!("what was restored is refused: {why}")),
        }
    })
}
