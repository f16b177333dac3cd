//! Faults that spoil an answer which was right.

use http::StatusCode;
use serde_json::{Value, json};

use super::fault::Fault;

/// An answer on its way out.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) status: StatusCode,
    pub(super) html: bool,
    pub(super) body: Vec<u8>,
}

impl Outgoing {
    pub(super) fn json(status: StatusCode, body: Option<&Value>) -> Self {
        let body = body.map(|body| serde_json::to_vec(body).unwrap_or_default());
        Self {
            status,
            html: false,
            body: body.unwrap_or_default(),
        }
    }

    /// What a proxy says, without any JSON.
    pub(super) fn bare(status: u16) -> Self {
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY),
            html: true,
            body: b"<html><body>something is wrong here</body></html>".to_vec(),
        }
    }

    /// The answer as the fault lets it through. Faults about lists leave other answers alone.
    pub(super) fn distorted(mut self, fault: Option<&Fault>) -> Self {
        match fault {
            Some(Fault::TruncatedPage) => self.edit_list(|things, _| {
                things.pop();
            }),
            Some(Fault::LostNextPage) => self.edit_list(|_, pages| {
                set(pages, "next_page", Value::Null);
            }),
            Some(Fault::EmptyList) => self.edit_list(|things, pages| {
                things.clear();
                set(pages, "next_page", Value::Null);
                set(pages, "last_page", json!(1));
                set(pages, "total_entries", json!(0));
            }),
            Some(Fault::MalformedJson) => self.body.truncate(self.body.len() / 2),
            Some(Fault::EmptyBody) => {
                self.status = StatusCode::OK;
                self.body.clear();
            }
            _ => {}
        }
        self
    }

    /// A list is its meta data and one array; Robot's is the array alone.
    fn edit_list(&mut self, edit: impl FnOnce(&mut Vec<Value>, &mut Value)) {
        let Ok(mut body) = serde_json::from_slice::<Value>(&self.body) else {
            return;
        };
        let mut pages = body
            .pointer("/meta/pagination")
            .cloned()
            .unwrap_or_default();
        let things = match &mut body {
            Value::Array(things) => Some(things),
            Value::Object(fields) if !pages.is_null() => {
                fields.values_mut().find_map(Value::as_array_mut)
            }
            _ => None,
        };
        let Some(things) = things else { return };
        edit(things, &mut pages);
        if let Some(place) = body.pointer_mut("/meta/pagination") {
            *place = pages;
        }
        self.body = serde_json::to_vec(&body).unwrap_or_default();
    }
}

fn set(pages: &mut Value, key: &str, value: Value) {
    if let Some(pages) = pages.as_object_mut() {
        pages.insert(key.to_owned(), value);
    }
}
