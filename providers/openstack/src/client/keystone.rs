//! Keystone: logins, and the catalogue of services.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, Secret};
use cloudkeel_http::{Client, Request, Token, TokenSource};
use cloudkeel_toolkit::json;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::{Credential, Identity, Interface, Scope};

/// What a login gives.
#[derive(Clone)]
pub(crate) struct Login {
    pub(super) token: Secret,
    pub(super) catalog: Arc<Vec<CatalogService>>,
    project: Option<String>,
}

impl Login {
    /// The project that the token is good for.
    pub(super) fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }
}

#[derive(Debug, Deserialize)]
struct TokenAnswer {
    token: TokenBody,
}

#[derive(Debug, Deserialize)]
struct TokenBody {
    expires_at: Option<Timestamp>,
    project: Option<ProjectBody>,
    #[serde(default)]
    catalog: Vec<CatalogService>,
}

#[derive(Debug, Deserialize)]
struct ProjectBody {
    id: String,
}

/// A service of the catalogue.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CatalogService {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    endpoints: Vec<CatalogEndpoint>,
}

#[derive(Debug, Clone, Deserialize)]
struct CatalogEndpoint {
    #[serde(default)]
    interface: String,
    region: Option<String>,
    region_id: Option<String>,
    url: String,
}

#[derive(Serialize)]
struct LoginBody<'a> {
    auth: AuthBody<'a>,
}

#[derive(Serialize)]
struct AuthBody<'a> {
    identity: IdentityBody<'a>,
    scope: Option<&'a Scope>,
}

#[derive(Serialize)]
struct IdentityBody<'a> {
    methods: [&'static str; 1],
    #[serde(flatten)]
    proof: &'a Identity,
}

/// Where tokens come from.
pub(super) struct Keystone {
    client: Client,
    credential: Credential,
}

impl Keystone {
    pub(super) const fn new(client: Client, credential: Credential) -> Self {
        Self { client, credential }
    }
}

#[async_trait]
impl TokenSource<Login> for Keystone {
    async fn fetch(&self) -> Result<Token<Login>, CloudError> {
        let Credential {
            identity, scope, ..
        } = &self.credential;
        let body = LoginBody {
            auth: AuthBody {
                identity: IdentityBody {
                    methods: [identity.method()],
                    proof: identity,
                },
                scope: scope.as_ref(),
            },
        };
        // A second token does no harm.
        let request = Request::post("/auth/tokens")
            .named("log in")
            .json(json::body(&body));
        let request = request.confidential().read_only().idempotent(true);
        let response = self.client.send(request).await?;
        let token = response.header("x-subject-token").map(Secret::from);
        let token = token.ok_or_else(|| response.malformed("it has no X-Subject-Token"))?;
        let TokenAnswer { token: body } = response.json()?;
        let login = Login {
            token,
            catalog: Arc::new(body.catalog),
            project: body.project.map(|project| project.id),
        };
        Ok(Token {
            value: login,
            expires_at: body.expires_at,
        })
    }
}

/// Which addresses of the catalogue are used.
pub(super) struct Endpoints<'a> {
    pub(super) catalog: &'a [CatalogService],
    pub(super) region: Option<&'a str>,
    pub(super) interface: Interface,
}

impl Endpoints<'_> {
    /// The first address of a service of one of these types, the first type first.
    pub(super) fn find(&self, types: &[&str]) -> Option<&str> {
        let fits = |endpoint: &&CatalogEndpoint| {
            let regions = [&endpoint.region, &endpoint.region_id];
            let is_here = |region: &str| regions.iter().any(|r| r.as_deref() == Some(region));
            endpoint.interface == self.interface.as_str() && self.region.is_none_or(is_here)
        };
        types.iter().find_map(|kind| {
            let services = self.catalog.iter().filter(|service| service.kind == *kind);
            let mut endpoints = services.flat_map(|service| &service.endpoints);
            endpoints.find(fits).map(|endpoint| endpoint.url.as_str())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog() -> Vec<CatalogService> {
        let catalog = json!([
            {"type": "volumev3", "endpoints": [{"interface": "public", "region": "a", "url": "http://old"}]},
            {"type": "compute", "endpoints": [
                {"interface": "internal", "region": "a", "url": "http://inside"},
                {"interface": "public", "region": "a", "region_id": "a", "url": "http://a"},
                {"interface": "public", "region": "B", "region_id": "b", "url": "http://b"},
            ]},
        ]);
        serde_json::from_value(catalog).unwrap()
    }

    #[test]
    fn an_address_has_the_right_interface_and_region() {
        let catalog = catalog();
        for (region, interface, types, expected) in [
            (None, Interface::Public, &["compute"][..], Some("http://a")),
            (Some("b"), Interface::Public, &["compute"], Some("http://b")),
            (Some("B"), Interface::Public, &["compute"], Some("http://b")),
            (Some("c"), Interface::Public, &["compute"], None),
            (
                None,
                Interface::Internal,
                &["compute"],
                Some("http://inside"),
            ),
            (None, Interface::Admin, &["compute"], None),
            (
                None,
                Interface::Public,
                &["block-storage", "volumev3"],
                Some("http://old"),
            ),
        ] {
            let endpoints = Endpoints {
                catalog: &catalog,
                region,
                interface,
            };
            assert_eq!(endpoints.find(types), expected, "{region:?} {interface:?}");
        }
    }
}
