//! Bodies of requests.

use std::net::Ipv4Addr;

use cloudkeel_emulation::Call;
use ipnet::Ipv4Net;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::operation::Operation;
use crate::refusal::Refusal;

/// Reads a body; a missing one counts as an empty object.
pub(super) fn read<T: DeserializeOwned>(call: &Call<Operation>) -> Result<T, Refusal> {
    let value: Value = match &*call.body {
        [] => Value::Object(Map::new()),
        body => serde_json::from_slice(body)
            .map_err(|error| Refusal::new("json_error", format!("invalid JSON: {error}")))?,
    };
    parse(value)
}

/// Reads a value; the error names the field.
pub(super) fn parse<T: DeserializeOwned>(value: Value) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (path, text) = (error.path().to_string(), error.inner().to_string());
        // A missing field has no path: serde names it in backticks.
        let field = match path.as_str() {
            "." => text.split('`').nth(1).unwrap_or("body"),
            path => path,
        };
        Refusal::invalid(field, text.clone())
    })
}

/// A number, or a name. Numbers may come as text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum IdOrName {
    Id(u64),
    Name(String),
}

impl IdOrName {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Id(id) => id.to_string(),
            Self::Name(name) => name.clone(),
        }
    }
}

/// Reads an IPv4 address in a field.
pub(super) fn address(field: &str, text: &str) -> Result<Ipv4Addr, Refusal> {
    text.parse()
        .map_err(|_| Refusal::invalid(field, format!("{text:?} is not an IPv4 address")))
}

/// Reads an IPv4 network in a field.
pub(super) fn range(field: &str, text: &str) -> Result<Ipv4Net, Refusal> {
    let range = text.parse::<Ipv4Net>().ok();
    let range = range.filter(|range| range.trunc() == *range);
    range.ok_or_else(|| Refusal::invalid(field, format!("{text:?} is not an IPv4 network")))
}
