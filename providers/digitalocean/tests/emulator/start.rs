//! Settings: the Go CCM's environment, our own form, and the start.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::{BuildError, CloudProvider, ConfigSource, ProviderFactory as _, ProviderInput};
use cloudkeel_emulator_digitalocean::{DigitalOceanCloud, InProcess, Operation};
use cloudkeel_provider_digitalocean::{
    BalancerType, Config, DigitalOceanFactory, FirewallSettings, Wiring,
};
use serde_json::json;

use crate::lab::Lab;

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn read(pairs: &[(&str, &str)]) -> Result<Config, String> {
    let input = ProviderInput {
        env: env(pairs),
        ..ProviderInput::default()
    };
    Config::read(&input).map_err(|problems| problems.to_string())
}

const TOKEN: (&str, &str) = ("DO_ACCESS_TOKEN", "t");

#[test]
fn every_variable_of_the_go_ccm_is_read() {
    let config = read(&[
        TOKEN,
        ("DO_OVERRIDE_URL", "http://127.0.0.1:1/"),
        ("DO_CLUSTER_ID", "prod"),
        ("DO_CLUSTER_VPC_ID", "v-1"),
        ("REGION", "fra1"),
        ("DO_API_RATE_LIMIT_QPS", "2.5"),
        ("DEFAULT_LB_TYPE", "REGIONAL"),
        ("PUBLIC_ACCESS_FIREWALL_NAME", "open"),
        ("PUBLIC_ACCESS_FIREWALL_TAGS", "a,b"),
        ("DEBUG_ADDR", "127.0.0.1:12301"),
        ("METRICS_ADDR", ":9090"),
    ]);
    let config = config.unwrap();
    assert_eq!(config.endpoint, "http://127.0.0.1:1");
    assert_eq!(config.cluster_id.as_deref(), Some("prod"));
    assert_eq!(config.vpc_id.as_deref(), Some("v-1"));
    assert_eq!(config.region.as_deref(), Some("fra1"));
    assert_eq!(config.rate_limit_qps, Some(2.5));
    assert_eq!(config.balancer_type, BalancerType::Regional);
    let firewall = FirewallSettings {
        name: "open".to_owned(),
        tags: vec!["a".to_owned(), "b".to_owned()],
    };
    assert_eq!(config.firewall, Some(firewall));
    assert_eq!(config.debug_address.as_deref(), Some("127.0.0.1:12301"));
    assert_eq!(config.metrics_address.as_deref(), Some(":9090"));
}

#[test]
fn the_content_of_a_cloud_config_is_ignored_as_by_the_go_ccm() {
    let input = ProviderInput {
        env: env(&[TOKEN, ("REGION", "fra1")]),
        config: ConfigSource::File {
            path: "cloud.conf".into(),
            text: "region: nowhere".to_owned(),
        },
        ..ProviderInput::default()
    };
    let config = Config::read(&input).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(config.region.as_deref(), Some("fra1"));
}

#[test]
fn what_is_wrong_is_reported_all_at_once() {
    let wrong = read(&[
        ("DO_API_RATE_LIMIT_QPS", "fast"),
        ("PUBLIC_ACCESS_FIREWALL_NAME", "open"),
        ("METRICS_ADDR", "here"),
    ]);
    let wrong = wrong.unwrap_err();
    for words in [
        "DO_ACCESS_TOKEN: is required",
        "DO_API_RATE_LIMIT_QPS: \"fast\"",
        "PUBLIC_ACCESS_FIREWALL_TAGS: is required with PUBLIC_ACCESS_FIREWALL_NAME",
        "METRICS_ADDR: \"here\"",
    ] {
        assert!(wrong.contains(words), "{words} in {wrong}");
    }
    let tags = read(&[TOKEN, ("PUBLIC_ACCESS_FIREWALL_TAGS", "a")]).unwrap_err();
    assert!(
        tags.contains("PUBLIC_ACCESS_FIREWALL_NAME: is required with"),
        "{tags}"
    );
    assert!(read(&[TOKEN, ("DO_API_RATE_LIMIT_QPS", "0")]).is_err());
}

#[test]
fn an_unknown_type_in_the_environment_is_the_default_and_in_our_own_form_a_mistake() {
    let config = read(&[TOKEN, ("DEFAULT_LB_TYPE", "SMALL")]).unwrap();
    assert_eq!(config.balancer_type, BalancerType::Network);
    let own = json!({"token": "t", "loadBalancers": {"type": "SMALL"}});
    let input = ProviderInput {
        config: ConfigSource::Own(own),
        ..ProviderInput::default()
    };
    let wrong = Config::read(&input).unwrap_err().to_string();
    assert!(wrong.contains("loadBalancers.type: \"SMALL\""), "{wrong}");
}

async fn build(lab: &Lab, more: &[(&str, &str)]) -> Result<Arc<dyn CloudProvider>, BuildError> {
    let token = ("DO_ACCESS_TOKEN", DigitalOceanCloud::TOKEN);
    let url = ("DO_OVERRIDE_URL", InProcess::URL);
    let input = ProviderInput {
        env: env(&[&[token, url], more].concat()),
        ..ProviderInput::default()
    };
    let wiring = Wiring {
        metadata: Some(Arc::new(lab.cloud.transport())),
        ..Wiring::over(lab.cloud.transport())
    };
    DigitalOceanFactory::wired(wiring)
        .build(input, lab.context())
        .await
}

#[tokio::test(start_paused = true)]
async fn the_region_is_checked_or_found() {
    let lab = Lab::new(1);
    build(&lab, &[("REGION", "fra1")]).await.unwrap();
    assert_eq!(lab.cloud.calls().of(Operation::ListRegions), 1);
    let wrong = build(&lab, &[("REGION", "mars1")]).await.err().unwrap();
    let wrong = wrong.to_string();
    assert!(
        wrong.contains("REGION: \"mars1\": expected one of nyc3, fra1, sgp1"),
        "{wrong}"
    );
    build(&lab, &[]).await.unwrap();
    assert_eq!(lab.cloud.calls().of(Operation::GetOwnRegion), 1);
}

#[tokio::test(start_paused = true)]
async fn controllers_are_there_if_they_are_configured() {
    let lab = Lab::new(1);
    let all = [
        ("REGION", "nyc3"),
        ("DO_CLUSTER_ID", "prod"),
        ("PUBLIC_ACCESS_FIREWALL_NAME", "open"),
        ("PUBLIC_ACCESS_FIREWALL_TAGS", "workers"),
    ];
    for (count, controllers) in [(1, 0), (2, 1), (4, 2)] {
        let provider = build(&lab, &all[..count]).await.unwrap();
        assert_eq!(provider.background_controllers().len(), controllers);
    }
    let factory = DigitalOceanFactory::default();
    assert_eq!(factory.preset_flags(), ["--authentication-skip-lookup"]);
    assert_eq!(factory.controllers().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_rate_limit_of_the_environment_holds() {
    let lab = Lab::new(1);
    let limit = [("REGION", "nyc3"), ("DO_API_RATE_LIMIT_QPS", "2")];
    let provider = build(&lab, &limit).await.unwrap();
    let began = tokio::time::Instant::now();
    for _ in 0..10 {
        provider.check().await.unwrap();
    }
    assert!(began.elapsed() >= std::time::Duration::from_secs(4));
}

#[tokio::test]
async fn health_and_metrics_are_served_at_their_addresses() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let free = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let (debug, metrics) = (free(), free());
    let lab = Lab::new(1);
    let addresses = [
        ("REGION", "nyc3"),
        ("DEBUG_ADDR", &debug),
        ("METRICS_ADDR", &metrics),
    ];
    let _provider = build(&lab, &addresses).await.unwrap();
    let get = async |address: &str, path: &str| {
        loop {
            let Ok(mut stream) = tokio::net::TcpStream::connect(address).await else {
                tokio::task::yield_now().await;
                continue;
            };
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            return answer;
        }
    };
    assert!(get(&debug, "/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(get(&metrics, "/metrics").await.starts_with("HTTP/1.1 200"));
    lab.cloud.revoke(DigitalOceanCloud::TOKEN);
    assert!(get(&debug, "/healthz").await.starts_with("HTTP/1.1 500"));
    assert!(get(&debug, "/other").await.starts_with("HTTP/1.1 404"));
}
