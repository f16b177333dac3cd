//! What stands behind the question mark.

use percent_encoding::percent_decode_str;

/// What to do about fields that a type does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// How exactly a version is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) label_selector: Option<String>,
    pub(crate) field_selector: Option<String>,
    pub(crate) limit: usize,
    pub(crate) continue_token: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) watch: bool,
    pub(crate) allow_watch_bookmarks: bool,
    pub(crate) send_initial_events: bool,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) dry_run: bool,
    pub(crate) field_validation: FieldValidation,
    pub(crate) include_object: Option<String>,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = value.replace('+', " ");
            let value = percent_decode_str(&value).decode_utf8_lossy().into_owned();
            query.take(key, value);
        }
        query
    }

    /// Turns a list into one of the objects as they were at this version, unless it goes on with another one.
    pub(crate) fn read_as_of(&mut self, version: u64) {
        if self.continue_token.is_none() && !self.watch {
            self.resource_version = Some(version.to_string());
            self.version_match = Some(VersionMatch::Exact);
        }
    }

    fn take(&mut self, key: &str, value: String) {
        let is_true = matches!(value.as_str(), "true" | "1" | "True");
        match key {
            "labelSelector" => self.label_selector = Some(value),
            "fieldSelector" => self.field_selector = Some(value),
            "limit" => self.limit = value.parse().unwrap_or_default(),
            "continue" if !value.is_empty() => self.continue_token = Some(value),
            "resourceVersion" if !value.is_empty() => self.resource_version = Some(value),
            "resourceVersionMatch" => {
                self.version_match = match value.as_str() {
                    "Exact" => Some(VersionMatch::Exact),
                    "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                    _ => None,
                };
            }
            "watch" => self.watch = is_true,
            "allowWatchBookmarks" => self.allow_watch_bookmarks = is_true,
            "sendInitialEvents" => self.send_initial_events = is_true,
            // Zero is the same as nothing said.
            "timeoutSeconds" => {
                self.timeout_seconds = value.parse().ok().filter(|seconds| *seconds > 0);
            }
            "dryRun" => self.dry_run = !value.is_empty(),
            "fieldValidation" => {
                self.field_validation = match value.as_str() {
                    "Ignore" => FieldValidation::Ignore,
                    "Strict" => FieldValidation::Strict,
                    _ => FieldValidation::Warn,
                };
            }
            "includeObject" => self.include_object = Some(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let query = Query::parse(
            "watch=1&labelSelector=zone%20in%20%28a%2Cb%29&limit=500&resourceVersion=&timeoutSeconds=290",
        );
        assert!(query.watch);
        assert_eq!(query.label_selector.as_deref(), Some("zone in (a,b)"));
        assert_eq!((query.limit, query.timeout_seconds), (500, Some(290)));
        assert_eq!(query.resource_version, None);
        assert_eq!(Query::parse("timeoutSeconds=0").timeout_seconds, None);
    }
}
