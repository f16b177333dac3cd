//! Reading many objects, page by page, all as they were at one moment.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::state::State;
use crate::object::put;
use crate::refusal::Refusal;
use crate::request::{Query, Target, VersionMatch};
use crate::selector::Selection;
use crate::store::Snapshot;

const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

const LIST_TOO_OLD: &str = "The resourceVersion for the provided list is too old.";

/// Where a list goes on.
#[derive(Debug, Serialize, Deserialize)]
struct Bookmark {
    v: String,
    /// The version of the list; -1 for whatever it is now.
    rv: i64,
    /// The first key that may come.
    start: String,
}

impl Bookmark {
    fn encode(version: i64, last: &str) -> String {
        let bookmark = Self {
            v: "meta.k8s.io/v1".to_owned(),
            rv: version,
            start: format!("{last}\0"),
        };
        let text = serde_json::to_vec(&bookmark).unwrap_or_default();
        BASE64_URL_SAFE_NO_PAD.encode(text)
    }

    fn decode(token: &str) -> Result<Self, Refusal> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token.trim_end_matches('='));
        let bookmark = bytes
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        bookmark.ok_or_else(|| {
            Refusal::bad_request("continue key is not valid: it was not made by this server")
        })
    }
}

/// A page of a list.
pub(crate) struct Page {
    pub(crate) version: u64,
    pub(crate) items: Vec<Arc<Value>>,
    next: Option<String>,
    remaining: Option<usize>,
}

impl Page {
    /// The metadata of the list.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.version.to_string()});
        if let Some(token) = &self.next {
            put(&mut metadata, &["continue"], token.as_str());
        }
        if let Some(count) = self.remaining {
            put(&mut metadata, &["remainingItemCount"], count);
        }
        metadata
    }
}

impl State {
    pub(crate) fn list(
        &self,
        target: &Target,
        query: &Query,
        selection: &Selection,
    ) -> Result<Page, Refusal> {
        let kind = target.kind;
        let (snapshot, version, start) = self.moment(kind.storage, query)?;
        let from_cache = query.resource_version.as_deref() == Some("0");
        let limit = if query.limit == 0 || from_cache {
            usize::MAX
        } else {
            query.limit
        };
        let mut matching = snapshot
            .range(start..)
            .filter(|(_, object)| selection.matches(kind, object));
        let page: Vec<_> = matching.by_ref().take(limit).collect();
        let left = matching.count();
        let last = page
            .last()
            .map(|(key, _)| key.as_str())
            .filter(|_| left > 0);
        Ok(Page {
            version,
            next: last.map(|key| Bookmark::encode(i64::try_from(version).unwrap_or(-1), key)),
            remaining: (left > 0 && !selection.selects()).then_some(left),
            items: page
                .into_iter()
                .map(|(_, object)| Arc::clone(object))
                .collect(),
        })
    }

    /// The objects at the moment that a query asks for, its version, and the key to begin with.
    fn moment(&self, storage: &str, query: &Query) -> Result<(Snapshot, u64, String), Refusal> {
        let now = self.store.version();
        let latest = || self.store.as_of(storage, now).unwrap_or_default();
        if let Some(token) = &query.continue_token {
            let bookmark = Bookmark::decode(token)?;
            let Ok(version) = u64::try_from(bookmark.rv) else {
                return Ok((latest(), now, bookmark.start));
            };
            let Some(past) = self.store.as_of(storage, version) else {
                let last = bookmark.start.trim_end_matches('\0');
                let mut refusal = Refusal::expired(TOO_OLD);
                refusal.go_on = Some(Bookmark::encode(-1, last));
                return Err(refusal);
            };
            return Ok((past, version, bookmark.start));
        }
        let asked = parse_version(query.resource_version.as_deref())?.unwrap_or(0);
        if asked > now {
            return Err(Refusal::too_large_version(asked, now));
        }
        if query.version_match == Some(VersionMatch::Exact) {
            let past = self.store.as_of(storage, asked);
            let past = past.ok_or_else(|| Refusal::expired(LIST_TOO_OLD))?;
            return Ok((past, asked, String::new()));
        }
        Ok((latest(), now, String::new()))
    }
}

/// A version as it stands in a request.
pub(crate) fn parse_version(text: Option<&str>) -> Result<Option<u64>, Refusal> {
    let parse = |text: &str| {
        text.parse().map_err(|_| {
            Refusal::bad_request(format!("Invalid value: {text:?}: not a resource version"))
        })
    };
    text.map(parse).transpose()
}
