//! Authentication by request headers from a trusted front proxy.

use std::collections::BTreeMap;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use crate::serving::user::User;

/// Which headers a front proxy sets, and which proxies are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontProxy {
    /// Common names of trusted proxies; empty trusts every certificate that the CA signed.
    pub allowed_names: Vec<String>,
    /// Headers with the user name; the first one present counts.
    pub username_headers: Vec<String>,
    /// Headers with the unique ID; the first one present counts.
    pub uid_headers: Vec<String>,
    /// Headers with groups; all count.
    pub group_headers: Vec<String>,
    /// Prefixes of headers with extra fields.
    pub extra_prefixes: Vec<String>,
}

impl FrontProxy {
    /// Checks that a proxy of this name is trusted.
    pub(super) fn allows(&self, common_name: &str) -> Result<(), String> {
        let allowed = self.allowed_names.is_empty()
            || self.allowed_names.iter().any(|name| name == common_name);
        allowed
            .then_some(())
            .ok_or_else(|| format!("the proxy {common_name:?} is not among the allowed names"))
    }

    /// The user that the headers name, if any.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let first = |names: &[String]| {
            let values = names.iter().filter_map(|name| headers.get(name));
            values.map(text).find(|value| !value.is_empty())
        };
        let name = first(&self.username_headers)?;
        let groups = self
            .group_headers
            .iter()
            .flat_map(|name| headers.get_all(name))
            .map(text)
            .filter(|group| !group.is_empty())
            .collect();
        Some(User {
            name,
            uid: first(&self.uid_headers).unwrap_or_default(),
            groups,
            extra: self.extra(headers),
        })
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            let prefix = prefix.to_ascii_lowercase();
            for (name, value) in headers {
                if let Some(key) = name.as_str().strip_prefix(&prefix) {
                    extra.entry(unescaped(key)).or_default().push(text(value));
                }
            }
        }
        extra
    }
}

fn text(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Keys are percent-encoded, because header names allow fewer characters than keys. A key that is not encoded is
/// taken as it is.
fn unescaped(key: &str) -> String {
    percent_decode_str(key)
        .decode_utf8()
        .map_or_else(|_| key.to_owned(), std::borrow::Cow::into_owned)
}
