//! Which requests go through a proxy.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use cloudkeel_api::CloudError;
use http::Uri;
pub(crate) use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::client::proxy::matcher::Matcher;

use crate::redact::Redactor;

/// Proxies by destination, as the usual environment variables name them.
///
/// The default is no proxy at all. `localhost` and loopback addresses never go through one.
#[derive(Clone, Default)]
pub struct ProxySettings {
    matcher: Option<Arc<Matcher>>,
}

impl ProxySettings {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` of this process, in upper or
    /// lower case.
    pub fn from_env() -> Result<Self, CloudError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads the same variables through `lookup`.
    ///
    /// A proxy that is neither `http://` nor `https://` is an error, not ignored: requests that were
    /// meant for a proxy must not leave another way.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, CloudError> {
        let read = |name: &str| {
            lookup(name)
                .or_else(|| lookup(&name.to_ascii_lowercase()))
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let mut builder = Matcher::builder().no(no_proxy(&read("NO_PROXY").unwrap_or_default()));
        let mut any = false;
        for name in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"] {
            let Some(value) = read(name) else { continue };
            any = true;
            check(name, &value)?;
            builder = match name {
                "ALL_PROXY" => builder.all(value),
                "HTTP_PROXY" => builder.http(value),
                _ => builder.https(value),
            };
        }
        Ok(Self {
            matcher: any.then(|| Arc::new(builder.build())),
        })
    }

    pub(crate) fn intercept(&self, destination: &Uri) -> Option<Intercept> {
        let matcher = self.matcher.as_ref()?;
        if destination.host().is_some_and(is_loopback) {
            return None;
        }
        matcher.intercept(destination)
    }
}

impl fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.matcher {
            None => f.write_str("no proxy"),
            Some(matcher) => matcher.fmt(f),
        }
    }
}

fn check(name: &str, value: &str) -> Result<(), CloudError> {
    let refuse = |why: &str| {
        let shown = Redactor::default().url(value);
        CloudError::invalid("configure HTTP client", format!("{name}={shown}: {why}"))
    };
    let uri: Uri = value
        .parse()
        .map_err(|error| refuse(&format!("not a URL: {error}")))?;
    match uri.scheme_str() {
        None | Some("http" | "https") if uri.authority().is_some() => Ok(()),
        Some("http" | "https") | None => Err(refuse("names no host")),
        Some(_) => Err(refuse("only http:// and https:// proxies can be used")),
    }
}

/// Puts the list into the form that the matcher knows: `*.example.com` is `.example.com`, and a port
/// is left out.
fn no_proxy(list: &str) -> String {
    let entries: Vec<_> = list
        .split(',')
        .map(|entry| {
            let entry = entry.trim();
            let entry = match entry.strip_prefix('*') {
                Some(domain) if domain.starts_with('.') => domain,
                _ => entry,
            };
            match entry.rsplit_once(':') {
                Some((host, port)) if !host.contains(':') && port.parse::<u16>().is_ok() => host,
                _ => entry,
            }
        })
        .collect();
    entries.join(",")
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
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

    #[test]
    fn a_proxy_is_chosen_by_scheme_and_host() {
        let both: &[_] = &[
            ("HTTP_PROXY", "http://plain:3128"),
            ("https_proxy", "http://secure:3129"),
            (
                "NO_PROXY",
                "example.com, *.internal, 10.0.0.0/8,host.test:8443",
            ),
        ];
        for (case, variables, url, expected) in [
            (
                "https",
                both,
                "https://api.hetzner.cloud/v1",
                Some("http://secure:3129/"),
            ),
            (
                "http",
                both,
                "http://keystone:5000/v3",
                Some("http://plain:3128/"),
            ),
            ("excepted domain", both, "https://example.com/", None),
            ("its subdomain", both, "https://api.example.com/", None),
            (
                "a lookalike",
                both,
                "https://notexample.com/",
                Some("http://secure:3129/"),
            ),
            ("a wildcard", both, "https://vc.internal/", None),
            ("a network", both, "http://10.1.2.3/", None),
            ("with a port", both, "https://host.test:8443/", None),
            ("loopback", both, "http://127.0.0.1:80/", None),
            ("loopback by name", both, "http://localhost/", None),
            ("loopback of IPv6", both, "http://[::1]:80/", None),
            ("nothing set", &[], "https://example.org/", None),
            (
                "empty means unset",
                &[("HTTPS_PROXY", "")],
                "https://example.org/",
                None,
            ),
            (
                "all",
                &[("ALL_PROXY", "http://any:1")],
                "https://example.org/",
                Some("http://any:1/"),
            ),
            (
                "without a scheme",
                &[("HTTPS_PROXY", "any:1")],
                "https://example.org/",
                Some("http://any:1/"),
            ),
            (
                "upper case wins",
                &[("HTTP_PROXY", "http://a:1"), ("http_proxy", "http://b:1")],
                "http://example.org/",
                Some("http://a:1/"),
            ),
        ] {
            let settings = settings(variables).unwrap();
            let chosen = settings.intercept(&url.parse().unwrap());
            let chosen = chosen.map(|proxy| proxy.uri().to_string());
            assert_eq!(chosen.as_deref(), expected, "{case}");
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_showing_its_password() {
        for value in [
            "socks5://joe:hunter2@proxy:1080",
            "http://",
            "http://a b",
            "ftp://x",
        ] {
            let error = settings(&[("HTTPS_PROXY", value)]).unwrap_err().to_string();
            assert!(error.contains("HTTPS_PROXY="), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_proxys_credential_is_sent_but_never_printed() {
        let settings = settings(&[("ALL_PROXY", "http://joe:hunter2@proxy:3128")]).unwrap();
        assert!(!format!("{settings:?}").contains("hunter2"));
        let proxy = settings.intercept(&"https://example.org".parse().unwrap());
        let credential = proxy.unwrap().basic_auth().unwrap().clone();
        assert_eq!(credential, "Basic am9lOmh1bnRlcjI=");
        assert!(credential.is_sensitive());
    }
}
