//! Where keys come from, and how requests are signed with them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_config::BehaviorVersion;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use cloudkeel_api::{Clock, CloudError, ErrorKind};
use cloudkeel_http::{Auth, Authorizer, Client, Token, TokenCache, TokenSource, Transport};
use jiff::Timestamp;

use super::{Call, Service, answer};
use crate::config::Config;

const FETCH: &str = "fetch AWS credentials";

/// How the session of an assumed role is called.
const SESSION: &str = "cloudkeel";

/// The keys of an account: fixed, or fetched and kept until shortly before they expire.
#[derive(Clone)]
pub(super) enum Keys {
    Fixed(Credentials),
    Fetched(Arc<TokenCache<Credentials>>),
}

impl Keys {
    /// Those of the settings or the environment, else of the default chain of the SDKs: profiles, web identity,
    /// containers (Pod Identity), SSO and the instance's role.
    pub(super) async fn of_chain(
        config: &Config,
        region: &str,
        transport: &Arc<dyn Transport>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        if let (Some(id), Some(secret)) = (&config.access_key_id, &config.secret_access_key) {
            let token = config.session_token.as_ref();
            let token = token.map(|token| token.expose().to_owned());
            let keys = Credentials::new(id, secret.expose(), token, None, "settings");
            return Self::Fixed(keys);
        }
        let loaded = aws_config::defaults(BehaviorVersion::latest())
            .region(aws_config::Region::new(region.to_owned()))
            .http_client(Bridge(Arc::clone(transport)))
            .load()
            .await;
        let chain = Chain(loaded.credentials_provider());
        Self::Fetched(Arc::new(TokenCache::new(
            Arc::new(chain),
            Arc::clone(clock),
        )))
    }

    /// Those of a role, which is assumed with the keys of this client.
    pub(super) fn of_role(
        sts: Client,
        role: &str,
        config: &Config,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let role = Role {
            sts,
            arn: role.to_owned(),
            source_arn: config.source_arn.clone(),
        };
        Self::Fetched(Arc::new(TokenCache::new(Arc::new(role), Arc::clone(clock))))
    }

    /// Signs every attempt of a request.
    pub(super) fn signing(
        &self,
        service: Service,
        region: &str,
        clock: &Arc<dyn Clock>,
    ) -> impl Authorizer + use<> {
        let (region, clock) = (region.to_owned(), Arc::clone(clock));
        let apply = move |keys: &Credentials, request: &mut http::Request<Bytes>| {
            let signed = signed(keys, service.signing_name(), &region, clock.now(), request);
            signed.map_err(|why| CloudError::invalid("sign request", why))
        };
        match self {
            Self::Fixed(keys) => Auth::fixed(keys.clone(), apply),
            Self::Fetched(keys) => Auth::renewed(Arc::clone(keys), apply),
        }
    }
}

/// Puts a signature of version 4 on a request. It covers all headers that are there now.
fn signed(
    keys: &Credentials,
    service: &str,
    region: &str,
    now: Timestamp,
    request: &mut http::Request<Bytes>,
) -> Result<(), String> {
    let text = |error: &dyn fmt::Display| error.to_string();
    let identity: Identity = keys.clone().into();
    let since_epoch = Duration::try_from(now.duration_since(Timestamp::UNIX_EPOCH));
    let time = SystemTime::UNIX_EPOCH + since_epoch.unwrap_or_default();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service)
        .time(time)
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| text(&error))?;
    let headers = request.headers().iter();
    let headers: Vec<_> = headers
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    let signable = SignableRequest::new(
        request.method().as_str(),
        request.uri().to_string(),
        headers.into_iter(),
        SignableBody::Bytes(request.body()),
    );
    let signable = signable.map_err(|error| text(&error))?;
    let output = sign(signable, &params.into()).map_err(|error| text(&error))?;
    let (instructions, _) = output.into_parts();
    instructions.apply_to_request_http1x(request);
    Ok(())
}

/// The default chain of the SDKs.
struct Chain(Option<SharedCredentialsProvider>);

#[async_trait]
impl TokenSource<Credentials> for Chain {
    async fn fetch(&self) -> Result<Token<Credentials>, CloudError> {
        let Some(provider) = &self.0 else {
            return Err(no_keys("no provider of credentials is configured"));
        };
        let keys = provider.provide_credentials().await.map_err(|error| {
            let cause = std::error::Error::source(&error);
            let cause = cause.map_or_else(|| error.to_string(), ToString::to_string);
            no_keys(&format!("{error}: {cause}"))
        })?;
        let expires_at = keys.expiry().and_then(|at| Timestamp::try_from(at).ok());
        Ok(Token {
            value: keys,
            expires_at,
        })
    }
}

fn no_keys(why: &str) -> CloudError {
    CloudError::new(FETCH, ErrorKind::Unauthenticated, why)
}

/// A role that is assumed. The account of the role, and the resource that this acts for, keep another customer's
/// role from being used by mistake.
struct Role {
    sts: Client,
    arn: String,
    source_arn: Option<String>,
}

#[async_trait]
impl TokenSource<Credentials> for Role {
    async fn fetch(&self) -> Result<Token<Credentials>, CloudError> {
        let call = Call::new(Service::Sts, "AssumeRole")
            .set("RoleArn", &self.arn)
            .set("RoleSessionName", SESSION);
        let mut request = call.request().confidential();
        if let Some(source) = &self.source_arn {
            let account = self.arn.split(':').nth(4).unwrap_or_default();
            request = request
                .header("x-amz-source-account", account)
                .header("x-amz-source-arn", source);
        }
        let response = self.sts.send(request).await?;
        let answered = response.decode(|body| answer(&call, body))?;
        let field = |name: &str| {
            let text = answered.value_at::<String>(&format!("Credentials/{name}"));
            text.map_err(|why| response.malformed(&why))
        };
        let expires_at: Timestamp = field("Expiration")?
            .parse()
            .map_err(|_| response.malformed("its Expiration is no time"))?;
        let keys = Credentials::new(
            field("AccessKeyId")?,
            field("SecretAccessKey")?,
            Some(field("SessionToken")?),
            None,
            "role",
        );
        Ok(Token {
            value: keys,
            expires_at: Some(expires_at),
        })
    }
}

/// Our connections for the SDK's providers of credentials, so that there is one TLS stack and one set of proxies.
#[derive(Clone)]
struct Bridge(Arc<dyn Transport>);

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bridge")
    }
}

impl HttpClient for Bridge {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Bridge {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let transport = Arc::clone(&self.0);
        HttpConnectorFuture::new(async move {
            let other =
                |error: &dyn fmt::Display| ConnectorError::other(error.to_string().into(), None);
            let request = request.try_into_http1x().map_err(|error| other(&error))?;
            let request =
                request.map(|body| Bytes::copy_from_slice(body.bytes().unwrap_or_default()));
            let answer = transport.send(request).await;
            let answer = answer.map_err(|error| ConnectorError::io(error.into()))?;
            HttpResponse::try_from(answer.map(SdkBody::from)).map_err(|error| other(&error))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of AWS's documentation, with the time and the keys that it has there.
    #[test]
    fn a_request_is_signed_as_documented() {
        let keys = Credentials::new(
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            None,
            None,
            "test",
        );
        let mut request = http::Request::new(Bytes::new());
        *request.uri_mut() = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08"
            .parse()
            .unwrap();
        request.headers_mut().insert(
            "content-type",
            "application/x-www-form-urlencoded; charset=utf-8"
                .parse()
                .unwrap(),
        );
        let now: Timestamp = "2015-08-30T12:36:00Z".parse().unwrap();
        signed(&keys, "iam", "us-east-1", now, &mut request).unwrap();
        let authorization = request.headers()["authorization"].to_str().unwrap();
        assert!(
            authorization.ends_with(
                "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
            ),
            "{authorization}"
        );
    }
}
