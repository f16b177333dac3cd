//! What happens before anything else.

use std::path::PathBuf;
use std::sync::Arc;

use cloudkeel_api::{
    BuildError, Capability, CloudProvider as _, ErrorKind, ProviderFactory as _, ProviderInput,
    Registry,
};
use cloudkeel_emulator_hetzner::{HetznerCloud, InProcess, Operation};
use cloudkeel_http::testing::{Reply, Script};
use cloudkeel_provider_hetzner::{Config, HetznerFactory, HetznerProvider, Wiring};

use crate::lab::Lab;

async fn connect(lab: &Lab, change: impl FnOnce(&mut Config)) -> Result<HetznerProvider, String> {
    let mut config = Lab::config();
    change(&mut config);
    let connected = HetznerProvider::connect(&config, &lab.context(), lab.wiring()).await;
    connected.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn the_network_is_found_by_name_or_number() {
    let lab = Lab::new(0);
    for network in ["kube".to_owned(), lab.network.to_string()] {
        let provider = connect(&lab, |config| config.network = Some(network)).await;
        let capabilities = provider.unwrap().capabilities();
        assert!(capabilities.contains(&Capability::Routes));
    }
    let missing = |config: &mut Config| config.network = Some("nope".to_owned());
    let error = connect(&lab, missing).await.err().unwrap();
    assert!(error.contains("\"nope\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_token_is_proven_with_one_cheap_read() {
    let lab = Lab::new(0);
    connect(&lab, |_| {}).await.unwrap();
    assert_eq!(lab.cloud.calls().of(Operation::ListLocations), 1);
    assert_eq!(lab.cloud.calls().total(), 1);
    lab.cloud.revoke(HetznerCloud::TOKEN);
    let error = connect(&lab, |_| {}).await.err().unwrap();
    assert!(error.contains("GET /locations"), "{error}");
    assert!(!error.contains(HetznerCloud::TOKEN));
}

#[tokio::test(start_paused = true)]
async fn this_machine_must_be_in_the_network_unless_configured_otherwise() {
    let lab = Lab::new(0);
    let inside = format!("- network_id: {}\n", lab.network);
    let attempt = |reply: Reply| async {
        let config = Config {
            attached_check: true,
            network: Some("kube".to_owned()),
            ..Lab::config()
        };
        let wiring = Wiring {
            metadata: Some(Script::new([reply])),
            ..lab.wiring()
        };
        let connected = HetznerProvider::connect(&config, &lab.context(), wiring).await;
        connected.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(attempt(Reply::text(200, inside)).await, Ok(()));
    let outside = attempt(Reply::text(200, "- network_id: 1\n")).await;
    assert!(outside.unwrap_err().contains("is not in network kube"));
    let silent = attempt(Reply::status(500)).await;
    assert!(silent.unwrap_err().contains("DISABLE_ATTACHED_CHECK"));
}

#[tokio::test(start_paused = true)]
async fn capabilities_follow_the_settings() {
    let lab = Lab::new(0);
    for (case, network, routes, balancers, expected) in [
        ("plain", false, true, true, vec![Capability::LoadBalancers]),
        ("no balancers", false, true, false, vec![]),
        (
            "network",
            true,
            true,
            true,
            vec![Capability::LoadBalancers, Capability::Routes],
        ),
        (
            "network without routes",
            true,
            false,
            true,
            vec![Capability::LoadBalancers],
        ),
    ] {
        let provider = connect(&lab, |config| {
            config.network = network.then(|| "kube".to_owned());
            config.routes = routes;
            config.load_balancers.enabled = balancers;
        });
        let mut found = provider.await.unwrap().capabilities();
        assert_eq!(found.remove(0), Capability::Instances, "{case}");
        assert_eq!(found, expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_check_shows_the_project_by_its_network_and_needs_the_flag_of_the_go_ccm() {
    let lab = Lab::new(0);
    let provider = connect(&lab, |config| config.network = Some("kube".to_owned()));
    let provider = provider.await.unwrap();
    assert!(!provider.has_cluster_id());
    let scope = provider.check().await.unwrap();
    assert!(scope.as_str().contains(&format!("network {}", lab.network)));
    lab.cloud.add_project("other");
    let (token, all) = (
        HetznerCloud::TOKEN,
        cloudkeel_emulator_hetzner::Permission::ReadWrite,
    );
    lab.cloud.grant(token, "other", all);
    let error = provider.check().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn the_files_of_its_secrets_are_shown_so_that_a_change_is_noticed() {
    let lab = Lab::new(0);
    let file = PathBuf::from("/etc/hcloud/token");
    let provider = connect(&lab, |config| config.files = vec![file.clone()]);
    assert_eq!(provider.await.unwrap().files(), [file]);
}

#[tokio::test(start_paused = true)]
async fn the_factory_reads_the_environment_and_stands_in_for_the_go_binary() {
    let lab = Lab::new(0);
    let wiring = Wiring {
        transport: Some(Arc::new(lab.cloud.transport())),
        ..Wiring::default()
    };
    let factory = HetznerFactory::wired(wiring);
    let env = |token: &str| ProviderInput {
        env: [
            ("HCLOUD_TOKEN", token),
            ("HCLOUD_ENDPOINT", &format!("{}/v1/", InProcess::URL)),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
        ..ProviderInput::default()
    };
    let built = factory.build(env(HetznerCloud::TOKEN), lab.context()).await;
    assert_eq!(built.unwrap().name(), "hcloud");
    let refused = factory.build(env(""), lab.context()).await.err().unwrap();
    assert!(matches!(refused, BuildError::Settings(_)), "{refused}");
    let registry = Registry::new().with(factory).unwrap();
    let stands_in = registry.replacing("hcloud-cloud-controller-manager");
    assert_eq!(stands_in, Some("hcloud"));
}
