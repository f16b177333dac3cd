//! moto, as `cargo xtask test --tier aws` runs it: accounts of its own, and a second API to change them.
#![allow(dead_code, reason = "two test programs use different parts of it")]

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_http::{TlsSettings, Transport, TransportError};
use cloudkeel_provider_aws::{Config, Wiring};
use cloudkeel_testkit::conformance::interposer::{Classifier, Interposer, RealTime, Rule};
use cloudkeel_testkit::conformance::{Answer, Interposed, ListShape};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{Value, json};

/// Where the tier put it.
const URL: &str = "MOTO_URL";

/// The account that a credential of another account shows, with an instance of its own.
const ELSEWHERE: &str = "199999999999";

const CALLS: Classifier = Classifier {
    rules: &[Rule::Param {
        param: "Action",
        reads: &["Describe", "AssumeRole", "Get"],
    }],
    page_param: None,
};

/// An interposer that knows the lists of EC2.
pub(crate) fn interposer() -> Interposer {
    interposer_of("item", "nextToken")
}

/// One that knows the lists of load balancing.
pub(crate) fn balancer_interposer() -> Interposer {
    interposer_of("member", "NextMarker")
}

fn interposer_of(item: &'static str, next: &'static str) -> Interposer {
    let list = ListShape::Xml { item, next };
    Interposer::new(CALLS)
        .with_list_shape(list)
        .with_errors(refusal)
}

/// A refusal as EC2 words it.
fn refusal(status: StatusCode) -> Answer {
    let (status, code) = match status.as_u16() {
        401 => (401, "AuthFailure"),
        403 => (403, "UnauthorizedOperation"),
        429 => (503, "RequestLimitExceeded"),
        other => (other, "InternalError"),
    };
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let error = json!({"Error": {"Code": code, "Message": "by script"}});
    Answer::xml(
        status,
        "Response",
        &json!({"Errors": error, "RequestID": "r"}),
    )
}

/// Requests of one account, which moto finds by a header.
struct InAccount {
    inner: Arc<dyn Transport>,
    account: HeaderValue,
}

#[async_trait]
impl Transport for InAccount {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        request
            .headers_mut()
            .insert("x-moto-account-id", self.account.clone());
        self.inner.send(request).await
    }
}

/// One account of moto.
pub(crate) struct Moto {
    pub(crate) url: String,
    pub(crate) interposed: Interposed,
    /// The IDs of what an installer left in it.
    pub(crate) facts: Value,
}

impl Moto {
    /// A new account.
    pub(crate) async fn open(interposed: Interposed) -> Result<Self, String> {
        Self::open_account(interposed, &json!([])).await
    }

    /// A new account, or the one of this number, for tests without the kit.
    pub(crate) async fn new(number: Option<&str>) -> Self {
        let connections = RealTime::connections(TlsSettings::default()).unwrap();
        let interposed = Interposed::new(interposer(), Arc::new(connections));
        let arguments = number.map_or(json!([]), |number| json!([number]));
        Self::open_account(interposed, &arguments).await.unwrap()
    }

    async fn open_account(interposed: Interposed, arguments: &Value) -> Result<Self, String> {
        let url = std::env::var(URL).map_err(|_| format!("{URL} is not set: run the tier aws"))?;
        let direct = interposed.direct();
        let facts = ask(&direct, &url, "POST /kit/clouds", arguments).await?;
        let way = |account: &str| -> Arc<dyn Transport> {
            let account = HeaderValue::from_str(account);
            Arc::new(InAccount {
                inner: interposed.direct(),
                account: account.unwrap_or(HeaderValue::from_static("")),
            })
        };
        let own = way(facts["account"].as_str().unwrap_or_default());
        let interposer = interposed.interposer().clone();
        let interposed = Interposed::new(interposer, own).with_other_project(way(ELSEWHERE));
        Ok(Self {
            url,
            interposed,
            facts,
        })
    }

    pub(crate) fn fact(&self, name: &str) -> String {
        self.facts[name].as_str().unwrap_or_default().to_owned()
    }

    /// A change behind the provider's back.
    pub(crate) async fn change(&self, change: &str, arguments: &Value) -> Result<Value, String> {
        let path = format!("POST /kit/clouds/{}/{change}", self.fact("account"));
        self.ask(&path, arguments).await
    }

    /// Everything that is in the account.
    pub(crate) async fn state(&self) -> Result<Value, String> {
        let path = format!("GET /kit/clouds/{}", self.fact("account"));
        self.ask(&path, &Value::Null).await
    }

    pub(crate) async fn ask(&self, path: &str, body: &Value) -> Result<Value, String> {
        ask(&self.interposed.direct(), &self.url, path, body).await
    }

    /// As a `cloud.conf` off an instance says it.
    pub(crate) fn config(&self) -> Config {
        Config {
            zone: Some("us-east-1a".to_owned()),
            vpc: Some(self.fact("vpc")),
            subnet_id: self.facts["subnets"]["private"][0]
                .as_str()
                .map(str::to_owned),
            cluster_id: Some(self.fact("cluster")),
            access_key_id: Some("AKIDKIT".to_owned()),
            secret_access_key: Some("kit-secret-key".into()),
            endpoint_url: Some(self.url.clone()),
            ..Config::default()
        }
    }

    /// Through the interposer.
    pub(crate) fn wiring(&self) -> Wiring {
        Wiring {
            metadata: Some(Arc::new(self.interposed.transport())),
            ..Wiring::over(self.interposed.transport())
        }
    }
}

async fn ask(
    transport: &Arc<dyn Transport>,
    url: &str,
    path: &str,
    body: &Value,
) -> Result<Value, String> {
    let (method, path) = path.split_once(' ').unwrap_or(("GET", path));
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|e| e.to_string())?;
    *request.uri_mut() = format!("{url}{path}").parse().map_err(|e| format!("{e}"))?;
    let answer = transport
        .send(request)
        .await
        .map_err(|error| error.to_string())?;
    if answer.status() != StatusCode::OK {
        return Err(format!(
            "{path}: {}",
            String::from_utf8_lossy(answer.body())
        ));
    }
    serde_json::from_slice(answer.body()).map_err(|error| error.to_string())
}
