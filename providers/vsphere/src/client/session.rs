//! Logins: one session of the SOAP API and at most one of the REST API for each vCenter, ended with the provider.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cloudkeel_api::{CloudError, ErrorKind, Secret, SecretStore};
use cloudkeel_http::{Client, Request, Token, TokenSource};
use http::header::{AUTHORIZATION, COOKIE, SET_COOKIE};
use serde::Deserialize;

use super::requests;
use crate::config::{SecretSource, VCenterConfig, credentials};
use crate::wire::{ServiceContent, answer};

/// The cookie of a session of the SOAP API.
const COOKIE_NAME: &str = "vmware_soap_session=";

/// The header of a session of the REST API.
pub(crate) const REST_SESSION: &str = "vmware-api-session-id";

const REST_SESSION_PATH: &str = "/rest/com/vmware/cis/session";

/// How long ending a session may take.
const LOGOUT_TIMEOUT: Duration = Duration::from_secs(5);

/// A session of the SOAP API, and what vCenter says about itself.
#[derive(Debug, Clone)]
pub(crate) struct SoapSession {
    pub(crate) cookie: Secret,
    pub(crate) content: ServiceContent,
}

/// Where user and password come from.
pub(crate) struct Credentials {
    server: String,
    configured: Option<(String, Secret)>,
    source: Option<SecretSource>,
    secrets: Arc<dyn SecretStore>,
}

impl Credentials {
    pub(crate) fn new(config: &VCenterConfig, secrets: Arc<dyn SecretStore>) -> Self {
        Self {
            server: config.server.clone(),
            configured: config.login.clone(),
            source: config.secret.clone(),
            secrets,
        }
    }

    /// User and password, read anew for every login: a Secret may have changed meanwhile.
    async fn read(&self) -> Result<(String, Secret), CloudError> {
        let found = match &self.source {
            Some(source) => self.read_secret(source).await,
            None => Err("no Secret is configured".to_owned()),
        };
        match (found, &self.configured) {
            (Ok(login), _) => Ok(login),
            (Err(_), Some(login)) => Ok(login.clone()),
            // Whatever is wrong with the Secret, it is no answer of vCenter about a machine.
            (Err(why), None) => Err(CloudError::new("Login", ErrorKind::Unauthenticated, why)),
        }
    }

    async fn read_secret(&self, source: &SecretSource) -> Result<(String, Secret), String> {
        let data = match source {
            SecretSource::Kubernetes { namespace, name } => {
                let data = self.secrets.read(namespace, name).await;
                data.map_err(|error| format!("Secret {namespace}/{name}: {error}"))?
            }
            SecretSource::Directory(path) => credentials::read_directory(path)?,
        };
        let login = credentials::find(&data, &self.server);
        login.map_err(|why| format!("{source}: {why}"))
    }
}

/// Logs in to the SOAP API.
pub(crate) struct SoapLogin {
    /// Sends without a session.
    pub(crate) client: Client,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) current: Mutex<Option<SoapSession>>,
    /// Which vCenter answered first.
    pub(crate) instance_uuid: OnceLock<String>,
}

impl SoapLogin {
    fn current(&self) -> MutexGuard<'_, Option<SoapSession>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another vCenter at the same address has other machines, which say nothing about ours.
    fn check_instance(&self, content: &ServiceContent) -> Result<(), CloudError> {
        let now = &content.instance_uuid;
        let first = self.instance_uuid.get_or_init(|| now.clone());
        if first == now {
            return Ok(());
        }
        let message = format!(
            "vCenter {now} answers where vCenter {first} did before: restart to go on with the new one"
        );
        Err(CloudError::new("Login", ErrorKind::Incomplete, message))
    }

    /// Ends the session, if there is one.
    pub(crate) async fn log_out(&self) {
        let Some(session) = self.current().take() else {
            return;
        };
        let request = requests::request(requests::logout(&session.content))
            .header(COOKIE.as_str(), session.cookie.expose())
            .within(LOGOUT_TIMEOUT);
        if let Err(error) = self.client.send(request).await {
            tracing::info!(err = %error, "failed to log out of vCenter");
        }
    }
}

#[async_trait]
impl TokenSource<SoapSession> for SoapLogin {
    async fn fetch(&self) -> Result<Token<SoapSession>, CloudError> {
        let request = requests::request(requests::service_content());
        let response = self.client.send(request).await?;
        let content = response.decode(|body| ServiceContent::read(&answer(body)?))?;
        self.check_instance(&content)?;
        let (user, password) = self.credentials.read().await?;
        let login = requests::login(&content, &user, password.expose());
        let response = self
            .client
            .send(requests::request(login).confidential())
            .await?;
        let cookies = response.headers().get_all(SET_COOKIE).into_iter();
        let mut cookies = cookies.filter_map(|cookie| cookie.to_str().ok());
        let cookie = cookies.find(|cookie| cookie.starts_with(COOKIE_NAME));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        let cookie = cookie.ok_or_else(|| response.malformed("it has no session cookie"))?;
        let session = SoapSession {
            cookie: cookie.into(),
            content,
        };
        *self.current() = Some(session.clone());
        Ok(Token {
            value: session,
            expires_at: None,
        })
    }
}

/// Logs in to the REST API.
pub(crate) struct RestLogin {
    pub(crate) client: Client,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) current: Mutex<Option<Secret>>,
}

#[derive(Deserialize)]
struct SessionAnswer {
    value: Secret,
}

impl RestLogin {
    fn current(&self) -> MutexGuard<'_, Option<Secret>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session, if there is one.
    pub(crate) async fn log_out(&self) {
        let Some(session) = self.current().take() else {
            return;
        };
        let request = Request::delete(REST_SESSION_PATH)
            .header(REST_SESSION, session.expose())
            .within(LOGOUT_TIMEOUT);
        if let Err(error) = self.client.send(request).await {
            tracing::info!(err = %error, "failed to log out of vCenter's REST API");
        }
    }
}

#[async_trait]
impl TokenSource for RestLogin {
    async fn fetch(&self) -> Result<Token, CloudError> {
        let (user, password) = self.credentials.read().await?;
        let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
        let request = Request::post(REST_SESSION_PATH)
            .header(AUTHORIZATION.as_str(), format!("Basic {pair}"))
            .header("vmware-use-header-authn", "true")
            .read_only()
            .confidential();
        let SessionAnswer { value } = self.client.fetch(request).await?;
        *self.current() = Some(value.clone());
        Ok(Token {
            value,
            expires_at: None,
        })
    }
}
