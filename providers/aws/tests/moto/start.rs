//! Where region, network and cluster come from.

use cloudkeel_api::{CloudProvider as _, ErrorKind};
use cloudkeel_provider_aws::{AwsProvider, Config};
use serde_json::json;

use crate::lab::context;
use crate::support::Moto;

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn on_an_instance_the_metadata_service_says_it_all() {
    let moto = Moto::new(None).await;
    moto.change("add_instance", &json!(["node-1"]))
        .await
        .unwrap();
    let state = moto.state().await.unwrap();
    moto.ask("POST /kit/identity", &json!([state["instances"][0]["id"]]))
        .await
        .unwrap();
    let config = Config {
        metadata_url: Some(moto.url.clone()),
        endpoint_url: Some(moto.url.clone()),
        access_key_id: Some("k".to_owned()),
        secret_access_key: Some("s".into()),
        ..Config::default()
    };
    let provider = AwsProvider::connect(&config, &context(), moto.wiring())
        .await
        .unwrap();
    let scope = provider.check().await.unwrap();
    assert_eq!(
        scope.to_string(),
        format!("{} in us-east-1", moto.fact("vpc"))
    );
    let list = provider.instances().unwrap().list().await.unwrap();
    assert_eq!(list.instances().len(), 1);
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_network_of_another_account_is_no_success() {
    let moto = Moto::new(None).await;
    let mut config = moto.config();
    config.vpc = Some("vpc-00000000".to_owned());
    let error = AwsProvider::connect(&config, &context(), moto.wiring())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.message().contains("no subnet of vpc-00000000"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn a_role_is_assumed_once_for_all_services() {
    let moto = Moto::new(None).await;
    moto.change("add_instance", &json!(["node-1"]))
        .await
        .unwrap();
    let mut config = moto.config();
    // A role stands in for the subnet: the program runs anywhere.
    config.subnet_id = None;
    config.role_arn = Some(format!("arn:aws:iam::{}:role/ccm", moto.fact("account")));
    config.source_arn = Some("arn:aws:eks:us-east-1:1:cluster/x".to_owned());
    let provider = AwsProvider::connect(&config, &context(), moto.wiring())
        .await
        .unwrap();
    let list = provider.instances().unwrap().list().await.unwrap();
    assert_eq!(list.instances().len(), 1);
    let interposer = moto.interposed.interposer();
    assert_eq!(interposer.calls_of("AssumeRole"), 1);
    assert!(interposer.calls().total() > 2);
}
