//! moto, as `cargo xtask test --tier aws` runs it: its own accounts, and a second API to change them.
#![allow(dead_code, reason = "two test programs use different parts of it")]

use std::sync::Arc;

use bytes::Bytes;
use cloudkeel_emulation::interposer::{Classifier, Interposer, Rule};
use cloudkeel_emulation::{Answer, BlockingTransport, ListShape};
use cloudkeel_provider_aws::{Config, Wiring};
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

/// Where the tier put it.
pub(crate) const URL: &str = "MOTO_URL";

const CALLS: Classifier = Classifier {
    rules: &[Rule::Param {
        param: "Action",
        reads: &["Describe", "AssumeRole", "Get"],
    }],
    page_param: None,
};

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
    Answer::xml(status, "Response", &json!({"Errors": error, "RequestID": "r"}))
}

/// One account of moto.
pub(crate) struct Moto {
    url: String,
    transport: Arc<BlockingTransport>,
    pub(crate) interposer: Interposer,
    /// The IDs of what an installer left in it.
    pub(crate) facts: Value,
}

impl Moto {
    /// A new account.
    pub(crate) fn new() -> Result<Self, String> {
        Self::with(&json!([]))
    }

    /// The account of this number.
    pub(crate) fn account(number: &str) -> Result<Self, String> {
        Self::with(&json!([number]))
    }

    fn with(arguments: &Value) -> Result<Self, String> {
        let url = std::env::var(URL).map_err(|_| format!("{URL} is not set: run the tier aws"))?;
        let control = BlockingTransport::default();
        let facts = ask(&control, &url, "POST /kit/clouds", arguments)?;
        let number = facts["account"].as_str().unwrap_or_default();
        let list = ListShape::Xml {
            item: "item",
            next: "nextToken",
        };
        Ok(Self {
            transport: Arc::new(BlockingTransport::default().with_header("x-moto-account-id", number)),
            interposer: Interposer::new(CALLS).with_list_shape(list).with_errors(refusal),
            facts,
            url,
        })
    }

    pub(crate) fn fact(&self, name: &str) -> String {
        self.facts[name].as_str().unwrap_or_default().to_owned()
    }

    /// A change behind the provider's back.
    pub(crate) fn change(&self, change: &str, arguments: &Value) -> Result<Value, String> {
        let path = format!("POST /kit/clouds/{}/{change}", self.fact("account"));
        ask(&self.transport, &self.url, &path, arguments)
    }

    /// Everything that is in the account.
    pub(crate) fn state(&self) -> Result<Value, String> {
        let path = format!("GET /kit/clouds/{}", self.fact("account"));
        ask(&self.transport, &self.url, &path, &Value::Null)
    }

    pub(crate) fn ask(&self, path: &str, body: &Value) -> Result<Value, String> {
        ask(&self.transport, &self.url, path, body)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// As a `cloud.conf` off an instance says it.
    pub(crate) fn config(&self) -> Config {
        Config {
            zone: Some("us-east-1a".to_owned()),
            vpc: Some(self.fact("vpc")),
            subnet_id: self.facts["subnets"]["private"][0].as_str().map(str::to_owned),
            cluster_id: Some(self.fact("cluster")),
            access_key_id: Some("AKIDKIT".to_owned()),
            secret_access_key: Some("kit-secret-key".into()),
            endpoint_url: Some(self.url.clone()),
            ..Config::default()
        }
    }

    /// Through the interposer, with time that stands still while moto works.
    pub(crate) fn wiring(&self) -> Wiring {
        Wiring::over(self.interposer.transport(Arc::clone(&self.transport) as _))
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let path = format!("DELETE /kit/clouds/{}", self.fact("account"));
        let _: Result<Value, String> = ask(&self.transport, &self.url, &path, &Value::Null);
    }
}

fn ask(transport: &BlockingTransport, url: &str, path: &str, body: &Value) -> Result<Value, String> {
    let (method, path) = path.split_once(' ').unwrap_or(("GET", path));
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|e| e.to_string())?;
    *request.uri_mut() = format!("{url}{path}").parse().map_err(|e| format!("{e}"))?;
    let answer = transport.exchange(&request).map_err(|error| error.to_string())?;
    if answer.status() != StatusCode::OK {
        return Err(format!("{path}: {}", String::from_utf8_lossy(answer.body())));
    }
    serde_json::from_slice(answer.body()).map_err(|error| error.to_string())
}
