//! Puts the credential on a request, just before it is sent.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use cloudkeel_api::{CloudError, Secret};
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use crate::token::TokenCache;

/// Proves to the cloud who is asking. It sees the finished request, so it may also sign it.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Adds the credential, and gives back what was used so that a refusal can be told apart from
    /// one of an older credential. Mark the header's value as sensitive.
    async fn authorize(&self, request: &mut http::Request<Bytes>) -> Result<Secret, CloudError>;

    /// The cloud refused `used` (401). Whether a new attempt has a chance.
    fn refused(&self, _used: &Secret) -> bool {
        false
    }

    /// The cloud accepted `used`.
    fn accepted(&self, _used: &Secret) {}
}

/// A token or password in a header.
pub struct HeaderAuth {
    header: HeaderName,
    scheme: &'static str,
    credential: Credential,
}

enum Credential {
    Fixed(Secret),
    Cached(Arc<TokenCache>),
}

impl HeaderAuth {
    /// `Authorization: Bearer …` with a token that never changes.
    pub const fn bearer(token: Secret) -> Self {
        Self::new(AUTHORIZATION, "Bearer ", Credential::Fixed(token))
    }

    /// `Authorization: Bearer …` with a token that is fetched and renewed.
    pub const fn bearer_from(tokens: Arc<TokenCache>) -> Self {
        Self::new(AUTHORIZATION, "Bearer ", Credential::Cached(tokens))
    }

    /// A header of its own, such as `X-Auth-Token`, with a token that never changes.
    pub const fn header(header: HeaderName, token: Secret) -> Self {
        Self::new(header, "", Credential::Fixed(token))
    }

    /// A header of its own with a token that is fetched and renewed.
    pub const fn header_from(header: HeaderName, tokens: Arc<TokenCache>) -> Self {
        Self::new(header, "", Credential::Cached(tokens))
    }

    /// `Authorization: Basic …`.
    pub fn basic(user: &str, password: &Secret) -> Self {
        let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.expose()));
        Self::new(AUTHORIZATION, "Basic ", Credential::Fixed(pair.into()))
    }

    const fn new(header: HeaderName, scheme: &'static str, credential: Credential) -> Self {
        Self {
            header,
            scheme,
            credential,
        }
    }
}

#[async_trait]
impl Authorizer for HeaderAuth {
    async fn authorize(&self, request: &mut http::Request<Bytes>) -> Result<Secret, CloudError> {
        let secret = match &self.credential {
            Credential::Fixed(secret) => secret.clone(),
            Credential::Cached(tokens) => tokens.token().await?,
        };
        let value = format!("{}{}", self.scheme, secret.expose());
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            let header = &self.header;
            let message = format!(
                "the credential for header {header} holds a line break or another character \
                 that no header can carry"
            );
            CloudError::invalid("authorize", message)
        })?;
        value.set_sensitive(true);
        request.headers_mut().insert(self.header.clone(), value);
        Ok(secret)
    }

    fn refused(&self, used: &Secret) -> bool {
        match &self.credential {
            Credential::Fixed(_) => false,
            Credential::Cached(tokens) => tokens.refused(used),
        }
    }

    fn accepted(&self, used: &Secret) {
        if let Credential::Cached(tokens) = &self.credential {
            tokens.accepted(used);
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
