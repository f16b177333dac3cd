//! What the tests of this folder share.

use std::time::Duration;

use bytes::Bytes;
use cloudkeel_emulator_hetzner::{HetznerCloud, InProcess, ServerSpec, Settings};
use cloudkeel_http::Transport as _;
use http::{HeaderMap, Method};
use serde_json::{Value, json};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The API, called without the provider.
pub(crate) struct Rest {
    transport: InProcess,
    authorization: String,
}

/// What the API said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    /// Status and code, which is empty if nothing was refused.
    pub(crate) fn said(&self) -> (u16, &str) {
        (self.status, self.code())
    }

    /// The field that was wrong.
    pub(crate) fn field(&self) -> &str {
        let name = &self.body["error"]["details"]["fields"][0]["name"];
        name.as_str().unwrap_or_default()
    }

    /// The IDs of a list.
    pub(crate) fn ids(&self, key: &str) -> Vec<u64> {
        let items = self.body[key].as_array().unwrap();
        items
            .iter()
            .map(|item| item["id"].as_u64().unwrap())
            .collect()
    }
}

impl Rest {
    pub(crate) fn of(cloud: &HetznerCloud) -> Self {
        Self::with_token(cloud, HetznerCloud::TOKEN)
    }

    pub(crate) fn with_token(cloud: &HetznerCloud, token: &str) -> Self {
        Self::with_authorization(cloud, format!("Bearer {token}"))
    }

    pub(crate) fn with_authorization(cloud: &HetznerCloud, authorization: String) -> Self {
        Self {
            transport: cloud.transport(),
            authorization,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(Method::POST, path, body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.call(Method::PUT, path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, Value::Null).await
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> Answer {
        let body = match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        self.send(method, path, body).await.unwrap()
    }

    /// `None` if the connection broke.
    pub(crate) async fn send(&self, method: Method, path: &str, body: Bytes) -> Option<Answer> {
        let mut request = http::Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = format!("{}{path}", InProcess::URL).parse().unwrap();
        let authorization = self.authorization.parse().unwrap();
        request.headers_mut().insert("authorization", authorization);
        let (head, body) = self.transport.send(request).await.ok()?.into_parts();
        Some(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        })
    }

    /// Makes a balancer in Falkenstein and gives its ID.
    pub(crate) async fn balancer(&self, name: &str) -> u64 {
        let body = json!({"name": name, "load_balancer_type": "lb11", "location": "fsn1"});
        let made = self.post("/v1/load_balancers", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.body["load_balancer"]["id"].as_u64().unwrap()
    }

    /// Does something to a balancer.
    pub(crate) async fn act(&self, balancer: u64, action: &str, body: Value) -> Answer {
        let path = format!("/v1/load_balancers/{balancer}/actions/{action}");
        self.post(&path, body).await
    }

    /// A balancer as the API shows it.
    pub(crate) async fn shown(&self, balancer: u64) -> Value {
        let answer = self.get(&format!("/v1/load_balancers/{balancer}")).await;
        answer.body["load_balancer"].clone()
    }
}

/// A cloud with servers `node-0`, `node-1` and so on in the network `kube`, which is `10.0.0.0/16`.
pub(crate) fn lab(servers: usize) -> (HetznerCloud, Rest) {
    lab_with(servers, Settings::default())
}

pub(crate) fn lab_with(servers: usize, settings: Settings) -> (HetznerCloud, Rest) {
    let cloud = HetznerCloud::new(settings);
    let network = cloud
        .add_network("kube", "10.0.0.0/16".parse().unwrap())
        .unwrap();
    for number in 0..servers {
        let spec = ServerSpec::named(format!("node-{number}")).in_network(network.id);
        cloud.add_server(spec).unwrap();
    }
    let rest = Rest::of(&cloud);
    (cloud, rest)
}

/// Actions that take ten seconds.
pub(crate) fn slow() -> Settings {
    Settings {
        action_duration: SECOND * 10,
        ..Settings::default()
    }
}

/// Adds a network `10.50.0.0/16` with a vSwitch behind `10.50.1.0/24`.
pub(crate) fn vswitch(cloud: &HetznerCloud) -> u64 {
    let ranges = ["10.50.0.0/24", "10.50.1.0/24"].map(|range| range.parse().unwrap());
    let network = cloud.add_network_with("v", "10.50.0.0/16".parse().unwrap(), &ranges);
    let id = network.unwrap().id;
    let change = cloud.change_network(id, |network| {
        network.subnets[1].kind = "vswitch".to_owned();
        network.subnets[1].vswitch_id = Some(7);
    });
    change.unwrap();
    id
}
