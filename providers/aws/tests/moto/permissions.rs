//! The printed IAM policies are enough, and signatures are really checked.

use cloudkeel_api::{CloudProvider as _, DesiredState, ErrorKind, Outcome};
use cloudkeel_provider_aws::{AwsProvider, PERMISSIONS, policy};
use serde_json::{Value, json};

use crate::lab::{Lab, context};
use crate::support::Moto;

/// An account in which signatures and policies are checked, and a user has exactly this policy.
async fn user_with(policy: &Value) -> (Moto, cloudkeel_provider_aws::Config) {
    let moto = Moto::new(None).await;
    for name in ["node-1", "node-2"] {
        moto.change("add_instance", &json!([name])).await.unwrap();
    }
    let keys = moto
        .change("add_user", &json!([policy.to_string()]))
        .await
        .unwrap();
    let mut config = moto.config();
    config.access_key_id = keys["id"].as_str().map(str::to_owned);
    config.secret_access_key = keys["secret"].as_str().map(Into::into);
    (moto, config)
}

#[tokio::test(start_paused = true)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn exactly_the_printed_policy_is_enough_and_less_is_not() {
    let (moto, config) = user_with(&policy(&[])).await;
    let lab = Lab::of(moto, &config).await;
    assert_eq!(
        lab.provider
            .instances()
            .unwrap()
            .list()
            .await
            .unwrap()
            .instances()
            .len(),
        2
    );
    for annotations in [
        &[("proxy-protocol", "*"), ("connection-idle-timeout", "90")][..],
        &[
            ("type", "nlb"),
            ("cross-zone-load-balancing-enabled", "true"),
        ],
    ] {
        let status = lab.settle(&lab.service(&[80, 443], annotations)).await;
        assert!(
            !status.health.is_empty(),
            "the health of targets may be read"
        );
        lab.settle(&lab.service(&[443, 81], annotations)).await;
        lab.remove(&lab.service(&[443, 81], annotations)).await;
    }
    // Quotas may be read, so what is over them is not even tried.
    let ports: Vec<u16> = (1_000..1_101).collect();
    let many = lab.service(&ports, &[]);
    let balancers = lab.provider.load_balancers().unwrap();
    let outcome = balancers.apply(DesiredState::Present(&many)).await;
    let Ok(Outcome::Incomplete { failures, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        failures.message.contains("at most 100 listeners"),
        "{failures:?}"
    );
    lab.remove(&many).await;
    let mut wrong = config.clone();
    wrong.secret_access_key = Some("another".into());
    let refused = AwsProvider::connect(&wrong, &context(), lab.moto.wiring()).await;
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::Unauthenticated);

    let (moto, config) = user_with(&policy(&["Routes"])).await;
    let denied = AwsProvider::connect(&config, &context(), moto.wiring()).await;
    assert_eq!(denied.err().unwrap().kind(), ErrorKind::Denied);

    // The features of Nodes are all that Nodes need.
    let (moto, config) = user_with(&policy(&["Nodes"])).await;
    let provider = AwsProvider::connect(&config, &context(), moto.wiring())
        .await
        .unwrap();
    provider.instances().unwrap().list().await.unwrap();
    assert!(
        PERMISSIONS
            .iter()
            .all(|permission| !permission.actions.is_empty())
    );
}
