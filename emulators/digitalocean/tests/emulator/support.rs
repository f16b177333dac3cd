//! What the tests of this folder share.

use bytes::Bytes;
use cloudkeel_emulator_digitalocean::{DigitalOceanCloud, InProcess, Settings};
use cloudkeel_http::Transport as _;
use http::{HeaderMap, Method};
use serde_json::{Value, json};

/// The API, spoken by hand.
pub(crate) struct Rest {
    transport: InProcess,
    token: String,
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

    /// Status, code and words of a refusal.
    pub(crate) fn said(&self) -> (u16, &str, &str) {
        let text = |key: &str| self.body[key].as_str().unwrap_or_default();
        (self.status, text("id"), text("message"))
    }
}

impl Rest {
    pub(crate) fn of(cloud: &DigitalOceanCloud) -> Self {
        Self::with_token(cloud, DigitalOceanCloud::TOKEN)
    }

    pub(crate) fn with_token(cloud: &DigitalOceanCloud, token: &str) -> Self {
        Self {
            transport: cloud.transport(),
            token: token.to_owned(),
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
        let mut request = http::Request::new(match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        });
        *request.method_mut() = method;
        *request.uri_mut() = format!("{}{path}", InProcess::URL).parse().unwrap();
        let authorization = format!("Bearer {}", self.token).parse().unwrap();
        request.headers_mut().insert("authorization", authorization);
        let (head, body) = self.transport.send(request).await.unwrap().into_parts();
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        }
    }
}

/// A cloud with droplets `node-0`, `node-1` and so on.
pub(crate) fn lab(droplets: usize) -> (DigitalOceanCloud, Rest) {
    lab_with(droplets, Settings::default())
}

pub(crate) fn lab_with(droplets: usize, settings: Settings) -> (DigitalOceanCloud, Rest) {
    let cloud = DigitalOceanCloud::new(settings);
    for number in 0..droplets {
        cloud.add_droplet(&format!("node-{number}"));
    }
    let rest = Rest::of(&cloud);
    (cloud, rest)
}

/// A load balancer with one port.
pub(crate) fn balancer(name: &str) -> Value {
    json!({
        "name": name, "region": "nyc3",
        "forwarding_rules": [{
            "entry_protocol": "tcp", "entry_port": 80, "target_protocol": "tcp", "target_port": 30080,
        }],
    })
}

/// The body with one field more.
pub(crate) fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}
