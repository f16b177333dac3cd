//! The address of a cloud's API, and which of its links may be followed.

use std::fmt;

use cloudkeel_api::CloudError;
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use crate::redact::Redactor;

/// Scheme, host and port: credentials are only ever sent to one that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Origin {
    fn of(uri: &Uri) -> Option<Self> {
        let scheme = uri.scheme()?.clone();
        let port = match uri.port_u16() {
            Some(port) => port,
            None if scheme == Scheme::HTTPS => 443,
            None if scheme == Scheme::HTTP => 80,
            None => return None,
        };
        let host = uri.host()?.to_ascii_lowercase();
        Some(Self { scheme, host, port })
    }
}

/// The address of an API: an origin and the path that all requests start with.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
    origin: Origin,
    prefix: String,
}

impl BaseUrl {
    /// Reads an address such as `https://api.hetzner.cloud/v1`; a trailing slash makes no difference.
    pub fn parse(url: &str) -> Result<Self, CloudError> {
        let refuse = |why: &str| {
            let shown = Redactor::default().url(url);
            CloudError::invalid(
                "configure HTTP client",
                format!("base URL {shown:?}: {why}"),
            )
        };
        let uri: Uri = url
            .trim()
            .parse()
            .map_err(|error| refuse(&format!("not a URL: {error}")))?;
        let parts = uri.clone().into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(refuse(
                "must start with https:// or http:// and name a host",
            ));
        };
        if authority.as_str().contains('@') {
            return Err(refuse("must not contain a user name or a password"));
        }
        if uri.query().is_some() {
            return Err(refuse("must not contain a query"));
        }
        let origin = Origin::of(&uri).ok_or_else(|| refuse("must be https:// or http://"))?;
        Ok(Self {
            scheme,
            authority,
            origin,
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// This address followed by a path that is already percent-encoded.
    pub(crate) fn join(&self, path_and_query: &str) -> Result<Uri, String> {
        self.on_this_origin(&format!("{}{path_and_query}", self.prefix))
    }

    fn on_this_origin(&self, path_and_query: &str) -> Result<Uri, String> {
        let path_and_query: PathAndQuery = path_and_query
            .parse()
            .map_err(|error| format!("not a path: {error}"))?;
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path_and_query)
            .build()
            .map_err(|error| error.to_string())
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({self})")
    }
}

/// Which links in the cloud's responses are followed.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkPolicy {
    /// Other origins that may see the credential.
    pub(crate) trusted: Vec<Origin>,
    /// Follow links to unknown origins on the base URL's own origin instead of rejecting them.
    pub(crate) rebase: bool,
}

impl LinkPolicy {
    pub(crate) fn resolve(&self, base: &BaseUrl, link: &str) -> Result<Uri, String> {
        if link.starts_with('/') && !link.starts_with("//") {
            return base.on_this_origin(link);
        }
        let uri: Uri = link
            .parse()
            .map_err(|error| format!("not a URL: {error}"))?;
        let origin = Origin::of(&uri).ok_or("neither an http(s) URL nor an absolute path")?;
        let has_user = uri
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'));
        if !has_user && (origin == base.origin || self.trusted.contains(&origin)) {
            return Ok(uri);
        }
        if self.rebase {
            let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
            return base.on_this_origin(path);
        }
        Err(format!(
            "it leads away from {base}, and the credential is not sent there"
        ))
    }
}

/// Reads an origin that may see the credential, such as `https://westeurope.management.azure.com`.
pub(crate) fn parse_origin(url: &str) -> Result<Origin, CloudError> {
    BaseUrl::parse(url).map(|base| base.origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_keeps_its_path_and_loses_its_trailing_slash() {
        for (given, expected) in [
            (
                "https://api.example.com/v1",
                "https://api.example.com/v1/servers",
            ),
            (
                "https://api.example.com/v1/",
                "https://api.example.com/v1/servers",
            ),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/servers"),
            (
                "https://[::1]:5000/identity",
                "https://[::1]:5000/identity/servers",
            ),
        ] {
            let base = BaseUrl::parse(given).unwrap();
            assert_eq!(base.join("/servers").unwrap(), expected, "{given}");
        }
    }

    #[test]
    fn a_bad_base_url_is_refused_without_showing_its_password() {
        for (given, why) in [
            ("api.example.com", "must start with"),
            ("/v1", "must start with"),
            ("ftp://example.com", "https:// or http://"),
            ("https://joe:hunter2@example.com", "user name or a password"),
            ("https://example.com/?a=b", "query"),
            ("", "not a URL"),
        ] {
            let error = BaseUrl::parse(given).unwrap_err().to_string();
            assert!(error.contains(why), "{given}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn links_are_followed_only_where_the_credential_may_go() {
        let base = BaseUrl::parse("https://api.example.com/v2").unwrap();
        let strict = LinkPolicy::default();
        let trusting = LinkPolicy {
            trusted: vec![parse_origin("https://eu.example.com").unwrap()],
            rebase: false,
        };
        let rebasing = LinkPolicy {
            trusted: Vec::new(),
            rebase: true,
        };
        let there = "https://api.example.com/v2/x?page=2";
        for (case, policy, link, expected) in [
            ("same origin", &strict, there, Some(there)),
            (
                "same origin, port spelled out",
                &strict,
                "https://API.example.com:443/y",
                Some("https://API.example.com:443/y"),
            ),
            ("absolute path", &strict, "/v2/x?page=2", Some(there)),
            (
                "another host",
                &strict,
                "https://evil.example.com/v2/x",
                None,
            ),
            (
                "another scheme",
                &strict,
                "http://api.example.com/v2/x",
                None,
            ),
            (
                "another port",
                &strict,
                "https://api.example.com:444/v2/x",
                None,
            ),
            (
                "a host in disguise",
                &strict,
                "https://api.example.com@evil.example.com/",
                None,
            ),
            (
                "a user at the right host",
                &strict,
                "https://joe@api.example.com/v2/x",
                None,
            ),
            ("no scheme", &strict, "//evil.example.com/v2/x", None),
            ("relative", &strict, "x?page=2", None),
            (
                "a trusted host",
                &trusting,
                "https://eu.example.com/v2/x",
                Some("https://eu.example.com/v2/x"),
            ),
            (
                "an untrusted host",
                &trusting,
                "https://us.example.com/v2/x",
                None,
            ),
            (
                "rebased",
                &rebasing,
                "http://10.0.0.1:9696/v2/x?page=2",
                Some(there),
            ),
        ] {
            let resolved = policy.resolve(&base, link).ok().map(|uri| uri.to_string());
            assert_eq!(resolved.as_deref(), expected, "{case}");
        }
    }
}
