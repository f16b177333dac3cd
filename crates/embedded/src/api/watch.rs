//! Following objects: where a watch begins, and what it sees next.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::EmbeddedApi;
use super::list::parse_version;
use super::objects::metadata_only;
use crate::kinds::Kind;
use crate::object::put;
use crate::protobuf;
use crate::refusal::Refusal;
use crate::request::{Encoding, Incoming, Target, VersionMatch, View};
use crate::selector::Selection;
use crate::store::Commit;
use crate::table::Table;

/// An event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: &'static str,
    pub(crate) object: Value,
}

impl Event {
    pub(crate) fn error(refusal: &Refusal) -> Self {
        Self {
            kind: "ERROR",
            object: refusal.status(),
        }
    }

    /// The event on the wire: a line, or a message behind its length.
    pub(crate) fn encoded(&self, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Json => self.line(),
            Encoding::Protobuf => {
                protobuf::encode_event(self.kind, &self.object).unwrap_or_default()
            }
        }
    }

    fn line(&self) -> Vec<u8> {
        let mut line = json!({"type": self.kind, "object": self.object})
            .to_string()
            .into_bytes();
        line.push(b'\n');
        line
    }
}

/// A watch that was accepted.
pub(crate) struct Watch {
    api: EmbeddedApi,
    kind: &'static Kind,
    selection: Selection,
    /// The last version that was looked at.
    seen: u64,
    /// What is sent before anything new.
    first: VecDeque<Event>,
    pub(crate) bookmarks: bool,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) encoding: Encoding,
    view: View,
    /// With tables: which objects come with their rows.
    include_object: Option<String>,
    /// With tables: whether the names of the columns were sent, which happens once.
    sent_columns: bool,
}

impl Watch {
    pub(super) fn new(
        api: &EmbeddedApi,
        request: &Incoming,
        target: &Target,
        selection: Selection,
    ) -> Result<Self, Refusal> {
        let query = &request.query;
        let asked = parse_version(query.resource_version.as_deref())?.unwrap_or(0);
        if query.send_initial_events && query.version_match != Some(VersionMatch::NotOlderThan) {
            return Err(Refusal::bad_request(
                "sendInitialEvents is allowed only with resourceVersionMatch=NotOlderThan",
            ));
        }
        let mut watch = Self {
            api: api.clone(),
            kind: target.kind,
            selection,
            seen: asked,
            first: VecDeque::new(),
            bookmarks: query.allow_watch_bookmarks,
            timeout_seconds: query.timeout_seconds,
            encoding: encoding_of(request, target.kind),
            view: request.accepted.view,
            include_object: query.include_object.clone(),
            sent_columns: false,
        };
        if asked == 0 || query.send_initial_events {
            watch.begin_with_everything(query.send_initial_events);
        }
        Ok(watch)
    }

    fn begin_with_everything(&mut self, says_when_done: bool) {
        let api = self.api.clone();
        let state = api.state();
        self.seen = state.store.version();
        for object in state.store.all(self.kind.storage) {
            if self.selection.matches(self.kind, object) {
                let event = self.event("ADDED", object);
                self.first.push_back(event);
            }
        }
        if says_when_done && self.bookmarks {
            let mut mark = self.bookmark();
            let done = json!({"k8s.io/initial-events-end": "true"});
            put(&mut mark.object, &["metadata", "annotations"], done);
            self.first.push_back(mark);
        }
    }

    /// A word that nothing was missed up to here.
    pub(crate) fn bookmark(&self) -> Event {
        let object = json!({
            "kind": self.kind.kind,
            "apiVersion": self.kind.api_version(),
            "metadata": {"creationTimestamp": null, "resourceVersion": self.seen.to_string()},
        });
        let object = match self.view {
            View::Metadata => metadata_only(&object),
            View::Object | View::Table => object,
        };
        Event {
            kind: "BOOKMARK",
            object,
        }
    }

    fn event(&mut self, kind: &'static str, object: &Value) -> Event {
        let object = match self.view {
            View::Object => self.kind.rules.shown(object),
            View::Metadata => metadata_only(object),
            View::Table => self.row(object),
        };
        Event { kind, object }
    }

    fn row(&mut self, object: &Value) -> Value {
        let table = Table::new(self.kind, self.api.now(), self.include_object.as_deref());
        let metadata = json!({"resourceVersion": crate::object::resource_version(object)});
        let mut table = table.of(&[object], &metadata);
        if self.sent_columns {
            put(&mut table, &["columnDefinitions"], json!([]));
        }
        self.sent_columns = true;
        table
    }

    /// What comes next, if there is anything yet; an error if it is forgotten already.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, Refusal> {
        if let Some(event) = self.first.pop_front() {
            return Ok(Some(event));
        }
        let api = self.api.clone();
        let state = api.state();
        let Some(news) = state.store.since(self.seen) else {
            let (asked, oldest) = (self.seen, state.store.horizon());
            return Err(Refusal::expired(format!(
                "too old resource version: {asked} ({oldest})"
            )));
        };
        for commit in news {
            self.seen = commit.version;
            if commit.resource == self.kind.storage
                && let Some((kind, object)) = self.seen_as(commit)
            {
                return Ok(Some(self.event(kind, &object)));
            }
        }
        Ok(None)
    }

    /// What a change is to a client that sees only what is selected.
    fn seen_as(&self, commit: &Commit) -> Option<(&'static str, Arc<Value>)> {
        let selected = |object: &Option<Arc<Value>>| {
            let object = object.as_ref()?;
            self.selection
                .matches(self.kind, object)
                .then(|| Arc::clone(object))
        };
        match (selected(&commit.before), selected(&commit.after)) {
            (None, None) => None,
            (None, Some(after)) => Some(("ADDED", after)),
            (Some(_), Some(after)) => Some(("MODIFIED", after)),
            (Some(before), None) => {
                let mut last = (*before).clone();
                put(
                    &mut last,
                    &["metadata", "resourceVersion"],
                    commit.version.to_string(),
                );
                Some(("DELETED", Arc::new(last)))
            }
        }
    }
}

/// How the events of a watch are written: as was asked for, if the kind is spoken like that.
fn encoding_of(request: &Incoming, kind: &Kind) -> Encoding {
    let accepted = request.accepted;
    let is_spoken = match accepted.view {
        View::Object => protobuf::speaks(&kind.api_version(), kind.kind),
        View::Metadata => true,
        View::Table => false,
    };
    if is_spoken {
        accepted.encoding
    } else {
        Encoding::Json
    }
}
