//! The metadata service of the instance that this runs on, version 2.

use std::time::Duration;

use cloudkeel_api::CloudError;
use cloudkeel_http::{Client, Request};
use cloudkeel_toolkit::Wiring;
use serde_json::Value;

/// Where an instance asks about itself.
pub(crate) const ENDPOINT: &str = "http://169.254.169.254";

const TIMEOUT: Duration = Duration::from_secs(5);

/// How long a token is good for; it is used at once.
const TOKEN_SECONDS: &str = "300";

/// The metadata service.
pub(crate) struct Metadata(Client);

/// The instance that this runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) instance: String,
    pub(crate) region: String,
}

impl Metadata {
    pub(crate) fn new(url: Option<&str>, wiring: &Wiring) -> Result<Self, CloudError> {
        let url = url.unwrap_or(ENDPOINT).trim_end_matches('/');
        wiring.metadata(url, TIMEOUT).map(Self)
    }

    /// Which instance this is, and where.
    pub(crate) async fn identity(&self) -> Result<Identity, CloudError> {
        let token = Request::put("/latest/api/token")
            .header("x-aws-ec2-metadata-token-ttl-seconds", TOKEN_SECONDS)
            .named("imds token")
            .confidential();
        let token = self.0.send(token).await?;
        let token = String::from_utf8_lossy(token.body()).trim().to_owned();
        let document = Request::get("/latest/dynamic/instance-identity/document")
            .header("x-aws-ec2-metadata-token", token)
            .named("imds identity");
        let response = self.0.send(document).await?;
        let document: Value = response.json()?;
        let field = |name: &str| {
            let text = document.get(name).and_then(Value::as_str);
            let text = text.filter(|text| !text.is_empty()).map(str::to_owned);
            text.ok_or_else(|| response.malformed(&format!("it has no {name}")))
        };
        Ok(Identity {
            instance: field("instanceId")?,
            region: field("region")?,
        })
    }
}
