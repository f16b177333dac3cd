//! Credentials of every source that can be shown on one machine: each in a process of its own, because the SDK's chain
//! reads the environment.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::CloudProvider as _;
use cloudkeel_http::{HttpSettings, HyperTransport, Transport, TransportError};
use cloudkeel_provider_aws::{AwsProvider, Config, Wiring};
use http::{Request, Response};
use serde_json::json;

use crate::lab::context;
use crate::support::Moto;

/// Set in the process that has one source of credentials.
const CHILD: &str = "CLOUDKEEL_TEST_VPC";

/// The account of requests that name none.
const DEFAULT_ACCOUNT: &str = "123456789012";

/// Notes with which key each request is signed, and what else is asked for.
struct Noting {
    inner: HyperTransport,
    seen: Mutex<BTreeMap<String, usize>>,
}

#[async_trait]
impl Transport for Noting {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let signed = request.headers().get("authorization");
        let signed = signed
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let key = signed
            .split_once("Credential=")
            .map(|(_, rest)| rest.split('/').next());
        let body = String::from_utf8_lossy(request.body()).into_owned();
        let what = match key.flatten() {
            Some(key) => format!("signed by {key}"),
            None if body.contains("AssumeRoleWithWebIdentity") => "web identity".to_owned(),
            None => request.uri().path().to_owned(),
        };
        *self.seen.lock().unwrap().entry(what).or_default() += 1;
        self.inner.send(request).await
    }
}

/// Connects with whatever the environment gives, calls twice, and says what was sent.
async fn in_child(vpc: String) {
    let noting = Arc::new(Noting {
        inner: HyperTransport::new(HttpSettings::default()).unwrap(),
        seen: Mutex::default(),
    });
    let config = Config {
        zone: Some("us-east-1a".to_owned()),
        vpc: Some(vpc),
        subnet_id: Some("subnet-1".to_owned()),
        cluster_id: Some("kit".to_owned()),
        endpoint_url: std::env::var("MOTO_URL").ok(),
        ..Config::default()
    };
    let wiring = Wiring {
        transport: Some(Arc::<Noting>::clone(&noting)),
        ..Wiring::default()
    };
    let provider = AwsProvider::connect(&config, &context(), wiring)
        .await
        .unwrap();
    provider.instances().unwrap().list().await.unwrap();
    for (what, times) in noting.seen.lock().unwrap().iter() {
        println!("{what}: {times}");
    }
}

/// What a process with only these variables says.
fn run_child(moto: &Moto, env: Vec<(&str, &str)>) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let name = "chain::each_source_of_credentials_is_asked_once";
    child.args(["--ignored", "--exact", "--nocapture", name]);
    child
        .env_clear()
        .env("MOTO_URL", &moto.url)
        .env(CHILD, moto.fact("vpc"))
        .envs(env);
    let output = child.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn each_source_of_credentials_is_asked_once() {
    if let Ok(vpc) = std::env::var(CHILD) {
        return in_child(vpc).await;
    }
    let moto = Moto::new(Some(DEFAULT_ACCOUNT)).await;
    moto.change("add_instance", &json!(["node-1"]))
        .await
        .unwrap();
    let folder = std::env::temp_dir().join(format!("cloudkeel-chain-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (token, profile) = (folder.join("token"), folder.join("credentials"));
    std::fs::write(&token, "web-identity-token").unwrap();
    std::fs::write(
        &profile,
        "[default]\naws_access_key_id=of-profile\naws_secret_access_key=s\n",
    )
    .unwrap();
    let (token, profile) = (token.display().to_string(), profile.display().to_string());
    let url = moto.url.as_str();
    let container = format!("{url}/kit/container");
    let role = "arn:aws:iam::123456789012:role/ccm";
    for (case, env, expected) in [
        (
            "a profile",
            vec![("AWS_SHARED_CREDENTIALS_FILE", profile.as_str())],
            "signed by of-profile: 2",
        ),
        (
            "Pod Identity",
            vec![
                ("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.as_str()),
                ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "t"),
            ],
            "/kit/container: 1",
        ),
        (
            "web identity",
            vec![
                ("AWS_WEB_IDENTITY_TOKEN_FILE", token.as_str()),
                ("AWS_ROLE_ARN", role),
                ("AWS_ENDPOINT_URL", url),
            ],
            "web identity: 1",
        ),
        (
            "the role of the instance",
            vec![("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)],
            "signed by role: 2",
        ),
    ] {
        let said = run_child(&moto, env);
        assert!(said.contains(expected), "{case}: {said}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
