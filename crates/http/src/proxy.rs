//! Which requests go through a proxy.

mod no_proxy;

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudkeel_api::CloudError;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;

use crate::redact::Redactor;
use no_proxy::NoProxy;

/// Proxies by destination. The default is no proxy at all.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    rules: Option<Arc<Rules>>,
}

#[derive(Debug)]
enum Rules {
    /// From the environment, as in a Go program.
    Environment {
        http: Option<Proxy>,
        https: Option<Proxy>,
        no_proxy: NoProxy,
    },
    /// One for every destination.
    Always(Proxy),
}

impl ProxySettings {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of this process, in upper or lower case, by the
    /// rules of Go's `net/http`: `localhost` and loopback addresses are always reached directly, and
    /// `ALL_PROXY` is not read.
    pub fn from_env() -> Result<Self, CloudError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads the same variables through `lookup`.
    ///
    /// A proxy that cannot be used is an error: requests that were meant for a proxy must not be sent directly.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, CloudError> {
        let read = |name: &str| {
            let given = |name: &str| {
                let value = lookup(name)?.trim().to_owned();
                (!value.is_empty()).then_some(value)
            };
            given(name).or_else(|| given(&name.to_ascii_lowercase()))
        };
        let proxy = |name| read(name).map(|url| Proxy::parse(name, &url)).transpose();
        let (http, https) = (proxy("HTTP_PROXY")?, proxy("HTTPS_PROXY")?);
        if http.is_none() && https.is_none() {
            return Ok(Self::default());
        }
        let no_proxy = NoProxy::parse(&read("NO_PROXY").unwrap_or_default());
        Ok(Self::with(Rules::Environment {
            http,
            https,
            no_proxy,
        }))
    }

    /// Sends everything through this proxy, loopback as well; `name` is the setting that an error names.
    pub fn always(name: &str, url: &str) -> Result<Self, CloudError> {
        Ok(Self::with(Rules::Always(Proxy::parse(name, url)?)))
    }

    fn with(rules: Rules) -> Self {
        Self {
            rules: Some(Arc::new(rules)),
        }
    }

    /// The `Proxy-Authorization` of requests to this destination, if a proxy forwards them. A tunnel has its own.
    pub fn forward_authorization(&self, destination: &Uri) -> Option<HeaderValue> {
        let proxy = self.intercept(destination)?;
        (proxy.forwards(destination)).then(|| proxy.basic_auth())?
    }

    pub(crate) fn intercept(&self, destination: &Uri) -> Option<&Proxy> {
        match self.rules.as_deref()? {
            Rules::Always(proxy) => Some(proxy),
            Rules::Environment { no_proxy, .. } if no_proxy.covers(destination) => None,
            Rules::Environment { http, https, .. } => match destination.scheme_str() {
                Some("http") => http.as_ref(),
                Some("https") => https.as_ref(),
                _ => None,
            },
        }
    }
}

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP, in clear text or over TLS: `CONNECT` for `https`, whole URLs for `http`.
    Http,
    /// SOCKS5, with host names that the proxy resolves.
    Socks5,
}

/// One proxy.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) protocol: Protocol,
    /// Its address, without credentials. The scheme says whether TLS is used.
    pub(crate) address: Uri,
    credential: Option<(String, String)>,
}

impl Proxy {
    fn parse(name: &str, url: &str) -> Result<Self, CloudError> {
        Self::read(url).map_err(|why| {
            let shown = shown(url);
            CloudError::invalid("configure HTTP client", format!("{name}={shown}: {why}"))
        })
    }

    fn read(url: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a URL such as `http://proxy.example:3128`";
        let whole = if url.contains("://") {
            url.to_owned()
        } else {
            format!("http://{url}")
        };
        let uri: Uri = whole
            .parse()
            .map_err(|error| format!("{EXPECTED}: {error}"))?;
        let (protocol, scheme, port) = match uri.scheme_str() {
            Some("http") => (Protocol::Http, Scheme::HTTP, 80),
            Some("https") => (Protocol::Http, Scheme::HTTPS, 443),
            Some("socks5" | "socks5h") => (Protocol::Socks5, Scheme::HTTP, 1080),
            _ => {
                return Err("expected a proxy of http://, https:// or socks5://".to_owned());
            }
        };
        let authority = uri.authority().map_or("", Authority::as_str);
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| format!("{EXPECTED}: it names no host"))?;
        let address = format!("{host}:{}", uri.port_u16().unwrap_or(port));
        let address = Uri::builder()
            .scheme(scheme)
            .authority(address)
            .path_and_query(PathAndQuery::from_static("/"))
            .build()
            .map_err(|error| format!("{EXPECTED}: {error}"))?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let credential = authority.rsplit_once('@').map(|(user_info, _)| {
            let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
            (decoded(user), decoded(password))
        });
        Ok(Self {
            protocol,
            address,
            credential,
        })
    }

    /// Whether it reads the requests to this destination, rather than forwarding bytes.
    pub(crate) fn forwards(&self, destination: &Uri) -> bool {
        self.protocol == Protocol::Http && destination.scheme() != Some(&Scheme::HTTPS)
    }

    pub(crate) fn credential(&self) -> Option<(&str, &str)> {
        let (user, password) = self.credential.as_ref()?;
        Some((user, password))
    }

    pub(crate) fn basic_auth(&self) -> Option<HeaderValue> {
        let (user, password) = self.credential()?;
        let encoded = STANDARD.encode(format!("{user}:{password}"));
        let mut value = HeaderValue::try_from(format!("Basic {encoded}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} proxy at {}", self.protocol, self.address)
    }
}

/// A proxy's URL without its credentials, which are before the last `@` whatever else is wrong with it.
fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    match rest.rsplit_once('@') {
        Some((_, host)) if scheme.is_empty() => format!("[redacted]@{host}"),
        Some((_, host)) => format!("{scheme}://[redacted]@{host}"),
        None => Redactor::default().url(url),
    }
}

/// The port of a URL, given or implied.
pub(crate) fn port_of(url: &Uri) -> Option<u16> {
    url.port_u16().or_else(|| match url.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<ProxySettings, CloudError> {
        ProxySettings::from_variables(|name| {
            let found = variables.iter().find(|(present, _)| *present == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn chosen(settings: &ProxySettings, url: &str) -> Option<String> {
        let proxy = settings.intercept(&url.parse().unwrap())?;
        Some(format!("{:?} {}", proxy.protocol, proxy.address))
    }

    #[test]
    fn a_proxy_is_chosen_by_scheme_and_host() {
        let settings = settings(&[
            ("HTTP_PROXY", "http://plain:3128"),
            ("https_proxy", "http://secure:3129"),
            ("NO_PROXY", "example.com,host.test:8443"),
        ])
        .unwrap();
        let (plain, secure) = (
            Some("Http http://plain:3128/"),
            Some("Http http://secure:3129/"),
        );
        for (url, expected) in [
            ("https://api.hetzner.cloud/v1", secure),
            ("http://keystone:5000/v3", plain),
            ("https://api.example.com/", None),
            ("https://host.test:8443/", None),
            ("https://host.test/", secure),
            ("http://127.0.0.1:80/", None),
        ] {
            assert_eq!(chosen(&settings, url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn variables_are_read_as_go_reads_them() {
        let any = Some("Http http://any:1/");
        for (case, variables, expected) in [
            ("nothing set", &[][..], None),
            ("empty means unset", &[("HTTPS_PROXY", "")], None),
            (
                "empty upper case",
                &[("HTTPS_PROXY", ""), ("https_proxy", "any:1")],
                any,
            ),
            (
                "upper case wins",
                &[("HTTPS_PROXY", "any:1"), ("https_proxy", "b:1")],
                any,
            ),
            ("not for http alone", &[("HTTP_PROXY", "any:1")], None),
            (
                "not read",
                &[("ALL_PROXY", "socks5://any:1"), ("all_proxy", "?")],
                None,
            ),
            ("without a scheme", &[("HTTPS_PROXY", "any:1")], any),
            (
                "over TLS",
                &[("HTTPS_PROXY", "https://any")],
                Some("Http https://any:443/"),
            ),
            (
                "SOCKS",
                &[("HTTPS_PROXY", "socks5://any")],
                Some("Socks5 http://any:1080/"),
            ),
            (
                "of IPv6, with a path",
                &[("HTTPS_PROXY", "http://[fd00::1]:3128/path")],
                Some("Http http://[fd00::1]:3128/"),
            ),
        ] {
            let settings = settings(variables).unwrap();
            let chosen = chosen(&settings, "https://example.org/");
            assert_eq!(chosen.as_deref(), expected, "{case}");
        }
    }

    #[test]
    fn a_proxy_for_everything_serves_loopback_too() {
        let settings = ProxySettings::always("proxy-url", "socks5://127.0.0.1:1080").unwrap();
        for url in [
            "https://127.0.0.1:6443/",
            "http://localhost/",
            "https://a.test/",
        ] {
            let expected = Some("Socks5 http://127.0.0.1:1080/");
            assert_eq!(chosen(&settings, url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_showing_its_password() {
        for value in [
            "socks4://joe:hunter2@proxy:1080",
            "http://",
            "http://a b",
            "http://joe:hunter2@a b",
            "joe:hunter2@a b",
            "http://joe:hunter2@",
            "http://joe:hun@hunter2@a b",
            "ftp://x",
        ] {
            let error = settings(&[("HTTPS_PROXY", value)]).unwrap_err();
            let error = format!("{error} {error:?}");
            assert!(error.contains("HTTPS_PROXY="), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_proxys_credential_is_sent_but_never_printed() {
        for (value, expected) in [
            ("http://joe:hunter2@proxy:3128", "Basic am9lOmh1bnRlcjI="),
            ("joe:hunter2@proxy:3128", "Basic am9lOmh1bnRlcjI="),
            ("http://j%40e:hunter2%3A@proxy", "Basic akBlOmh1bnRlcjI6"),
        ] {
            let settings = settings(&[("HTTPS_PROXY", value)]).unwrap();
            assert!(!format!("{settings:?}").contains("hunter2"));
            let proxy = settings.intercept(&"https://example.org".parse().unwrap());
            let credential = proxy.unwrap().basic_auth().unwrap();
            assert_eq!(credential, expected);
            assert!(credential.is_sensitive());
        }
    }

    #[test]
    fn only_a_proxy_that_reads_requests_gets_the_credential_in_them() {
        let http = ProxySettings::always("x", "http://joe:hunter2@proxy:3128").unwrap();
        let socks = ProxySettings::always("x", "socks5://joe:hunter2@proxy").unwrap();
        let authorized = |settings: &ProxySettings, url: &str| {
            let url = url.parse().unwrap();
            settings.forward_authorization(&url).is_some()
        };
        assert!(authorized(&http, "http://a.test/"));
        assert!(!authorized(&http, "https://a.test/"));
        assert!(!authorized(&socks, "http://a.test/"));
    }
}
