//! Adds the credential to a request, just before it is sent.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use cloudkeel_api::{CloudError, Secret};
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use crate::token::{IssuedToken, LoginId, TokenCache};

/// Proves to the cloud who is asking. It sees the finished request, so it may also sign it.
///
/// [`Auth`] is the one that most clouds need. The engine asks before every attempt, so that a signature is
/// as fresh as the attempt. What the client's [`ErrorMap`](crate::ErrorMap) calls
/// [`Unauthenticated`](cloudkeel_api::ErrorKind::Unauthenticated), whatever its status, is a refusal of the
/// credential: each call renews it at most once.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Adds the credential or the signature, and returns the login it comes from. Mark a header's value as sensitive
    /// unless its name shows that it is secret.
    async fn authorize(&self, request: &mut http::Request<Bytes>) -> Result<LoginId, CloudError>;

    /// The cloud rejected the credential of this login. Returns whether a new attempt has a chance.
    fn refused(&self, _login: LoginId) -> bool {
        false
    }

    /// The cloud accepted the credential of this login.
    fn accepted(&self, _login: LoginId) {}
}

/// A credential that never changes or is renewed, and how requests carry it or are signed with it.
///
/// A session of vSphere is a header, or a cookie, with what a login gave:
///
/// ```
/// # use std::sync::Arc;
/// # use cloudkeel_api::Secret;
/// # use cloudkeel_http::{Auth, HeaderAuth, TokenCache, set_secret_header};
/// # use http::{HeaderName, header::COOKIE};
/// # fn example(rest: Arc<TokenCache>, soap: Arc<TokenCache>) {
/// let session = HeaderName::from_static("vmware-api-session-id");
/// let rest = HeaderAuth::header_from(session, rest);
/// let soap = Auth::renewed(soap, |session: &Secret, request| {
///     set_secret_header(request, &COOKIE, &format!("vmware_soap_session={}", session.expose()))
/// });
/// # let _ = (rest, soap);
/// # }
/// ```
///
/// A signature covers the request as it is sent. This is the one of OCI for a request without a body; that
/// of AWS is made by its own library, with keys that a [`TokenSource`](crate::TokenSource) fetches.
///
/// ```
/// # use std::sync::Arc;
/// # use cloudkeel_api::{Clock, CloudError};
/// # use cloudkeel_http::{Auth, set_secret_header};
/// # use http::HeaderValue;
/// # use http::header::{AUTHORIZATION, DATE, HOST};
/// # #[derive(Clone)] struct ApiKey { id: String }
/// # fn rsa_sha256(_: &ApiKey, text: &str) -> String { text.len().to_string() }
/// # fn http_date(clock: &dyn Clock) -> String { clock.now().to_string() }
/// # fn text(text: &str) -> Result<HeaderValue, CloudError> {
/// #     HeaderValue::from_str(text).map_err(|error| CloudError::invalid("sign", error.to_string()))
/// # }
/// # fn example(key: ApiKey, clock: Arc<dyn Clock>) {
/// let oci = Auth::fixed(key, move |key: &ApiKey, request| {
///     let date = http_date(&*clock);
///     let method = request.method().as_str().to_ascii_lowercase();
///     let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
///     let host = request.uri().authority().map_or("", |host| host.as_str()).to_owned();
///     let signed = format!("date: {date}\n(request-target): {method} {target}\nhost: {host}");
///     let signature = rsa_sha256(key, &signed);
///     request.headers_mut().insert(DATE, text(&date)?);
///     request.headers_mut().insert(HOST, text(&host)?);
///     set_secret_header(request, &AUTHORIZATION, &format!(
///         "Signature version=\"1\",keyId=\"{}\",algorithm=\"rsa-sha256\",\
///          headers=\"date (request-target) host\",signature=\"{signature}\"", key.id))
/// });
/// # let _ = oci;
/// # }
/// ```
pub struct Auth<C = Secret> {
    credential: Credential<C>,
    apply: Box<Apply<C>>,
}

/// A token or password in a header.
pub type HeaderAuth = Auth<Secret>;

type Apply<C> = dyn Fn(&C, &mut http::Request<Bytes>) -> Result<(), CloudError> + Send + Sync;

enum Credential<C> {
    Fixed(C),
    Renewed(Arc<TokenCache<C>>),
}

impl<C> Auth<C> {
    /// A credential that never changes, and what puts it on a request.
    pub fn fixed(
        credential: C,
        apply: impl Fn(&C, &mut http::Request<Bytes>) -> Result<(), CloudError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            credential: Credential::Fixed(credential),
            apply: Box::new(apply),
        }
    }

    /// A credential that is fetched and renewed, and what puts it on a request.
    pub fn renewed(
        tokens: Arc<TokenCache<C>>,
        apply: impl Fn(&C, &mut http::Request<Bytes>) -> Result<(), CloudError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            credential: Credential::Renewed(tokens),
            apply: Box::new(apply),
        }
    }
}

impl HeaderAuth {
    /// `Authorization: Bearer …` with a token that never changes.
    pub fn bearer(token: Secret) -> Self {
        Self::fixed(token, bearer)
    }

    /// `Authorization: Bearer …` with a token that is fetched and renewed.
    pub fn bearer_from(tokens: Arc<TokenCache>) -> Self {
        Self::renewed(tokens, bearer)
    }

    /// A header of its own, such as `X-Auth-Token`, with a token that never changes.
    pub fn header(header: HeaderName, token: Secret) -> Self {
        Self::fixed(token, move |token, request| {
            set_secret_header(request, &header, token.expose())
        })
    }

    /// A header of its own with a token that is fetched and renewed.
    pub fn header_from(header: HeaderName, tokens: Arc<TokenCache>) -> Self {
        Self::renewed(tokens, move |token, request| {
            set_secret_header(request, &header, token.expose())
        })
    }

    /// `Authorization: Basic …`.
    pub fn basic(user: &str, password: &Secret) -> Self {
        let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
        Self::fixed(pair.into(), |pair, request| {
            set_secret_header(request, &AUTHORIZATION, &format!("Basic {}", pair.expose()))
        })
    }
}

fn bearer(token: &Secret, request: &mut http::Request<Bytes>) -> Result<(), CloudError> {
    set_secret_header(
        request,
        &AUTHORIZATION,
        &format!("Bearer {}", token.expose()),
    )
}

/// Sets a header whose value is never logged, replacing others of its name.
pub fn set_secret_header(
    request: &mut http::Request<Bytes>,
    header: &HeaderName,
    value: &str,
) -> Result<(), CloudError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        let message = format!(
            "the credential for header {header} holds a line break or another character that no \
             header can carry"
        );
        CloudError::invalid("authorize", message)
    })?;
    value.set_sensitive(true);
    request.headers_mut().insert(header, value);
    Ok(())
}

#[async_trait]
impl<C: Clone + Send + Sync> Authorizer for Auth<C> {
    async fn authorize(&self, request: &mut http::Request<Bytes>) -> Result<LoginId, CloudError> {
        match &self.credential {
            Credential::Fixed(credential) => {
                (self.apply)(credential, request)?;
                Ok(LoginId::FIXED)
            }
            Credential::Renewed(tokens) => {
                let IssuedToken { value, login } = tokens.token().await?;
                (self.apply)(&value, request)?;
                Ok(login)
            }
        }
    }

    fn refused(&self, login: LoginId) -> bool {
        match &self.credential {
            Credential::Fixed(_) => false,
            Credential::Renewed(tokens) => tokens.refused(login),
        }
    }

    fn accepted(&self, login: LoginId) {
        if let Credential::Renewed(tokens) = &self.credential {
            tokens.accepted(login);
        }
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::ErrorKind;

    use super::*;

    async fn sent(auth: HeaderAuth) -> Result<http::Request<Bytes>, CloudError> {
        let mut request = http::Request::new(Bytes::new());
        auth.authorize(&mut request).await?;
        Ok(request)
    }

    #[tokio::test]
    async fn each_scheme_has_its_header() {
        let token = Secret::new("abc");
        let own = HeaderName::from_static("x-auth-token");
        for (case, auth, header, value) in [
            (
                "bearer",
                HeaderAuth::bearer(token.clone()),
                AUTHORIZATION,
                "Bearer abc",
            ),
            (
                "own header",
                HeaderAuth::header(own.clone(), token.clone()),
                own,
                "abc",
            ),
            (
                "basic",
                HeaderAuth::basic("joe", &token),
                AUTHORIZATION,
                "Basic am9lOmFiYw==",
            ),
        ] {
            let request = sent(auth).await.unwrap();
            assert_eq!(request.headers()[&header], value, "{case}");
            assert!(request.headers()[&header].is_sensitive(), "{case}");
        }
    }

    #[tokio::test]
    async fn a_token_with_a_line_break_is_refused_without_being_shown() {
        let error = sent(HeaderAuth::bearer(Secret::new("hunter2\n")))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("line break"), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
