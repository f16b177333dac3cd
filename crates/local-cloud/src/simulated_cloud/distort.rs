//! Faults that spoil an answer which was right.

use cloudkeel_provider_local::wire::{List, PageInfo};
use serde_json::Value;

use super::fault::Fault;
use super::rest::Answer;

/// The answer as the fault lets it through. Faults about lists leave other answers alone.
pub(super) fn distort(mut answer: Answer, fault: Option<&Fault>) -> Answer {
    match fault {
        Some(Fault::TruncatedPage) => edit_list(&mut answer, |list| {
            list.items.pop();
        }),
        Some(Fault::LostNextLink) => edit_list(&mut answer, |list| list.page.next = None),
        Some(Fault::EmptyList) => edit_list(&mut answer, |list| {
            list.items.clear();
            list.page = PageInfo {
                total: 0,
                next: None,
                ..list.page
            };
        }),
        Some(Fault::MalformedJson) => answer.body.truncate(answer.body.len() / 2),
        Some(Fault::Html) => {
            answer.status = http::StatusCode::OK;
            answer.body = b"<html><body>Welcome to the proxy</body></html>".to_vec();
        }
        Some(Fault::EmptyBody) => {
            answer.status = http::StatusCode::OK;
            answer.body.clear();
        }
        _ => {}
    }
    answer
}

fn edit_list(answer: &mut Answer, edit: impl FnOnce(&mut List<Value>)) {
    if let Ok(mut list) = serde_json::from_slice(&answer.body) {
        edit(&mut list);
        answer.body = serde_json::to_vec(&list).unwrap_or_default();
    }
}
