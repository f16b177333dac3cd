//! Objects as rows, for `kubectl get`.

mod age;
mod event;
mod node;
mod plain;
mod service;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object::put;
use age::age;

/// A column: its name, and whether only `-o wide` shows it.
pub(super) struct Column {
    name: &'static str,
    wide: bool,
}

pub(super) const fn column(name: &'static str) -> Column {
    Column { name, wide: false }
}

pub(super) const fn wide(name: &'static str) -> Column {
    Column { name, wide: true }
}

/// How a kind of objects is shown.
struct Columns {
    columns: &'static [Column],
    cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// Makes tables of a kind.
pub(crate) struct Table<'a> {
    kind: &'a Kind,
    now: Timestamp,
    include: Option<&'a str>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(kind: &'a Kind, now: Timestamp, include: Option<&'a str>) -> Self {
        Self { kind, now, include }
    }

    /// The table of these objects, which are in the stored form.
    pub(crate) fn of(&self, objects: &[&Value], metadata: &Value) -> Value {
        let columns = columns_of(self.kind.storage);
        let rows: Vec<_> = objects
            .iter()
            .map(|object| self.row(&columns, object))
            .collect();
        let columns: Vec<_> = columns.columns.iter().map(definition).collect();
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        })
    }

    fn row(&self, columns: &Columns, object: &Value) -> Value {
        let mut row = json!({"cells": (columns.cells)(object, self.now)});
        let shown = match self.include {
            Some("None") => return row,
            Some("Object") => self.kind.rules.shown(object),
            _ => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
        };
        put(&mut row, &["object"], shown);
        row
    }
}

fn definition(column: &Column) -> Value {
    let is_name = column.name == "Name";
    json!({
        "name": column.name,
        "type": "string",
        "format": if is_name { "name" } else { "" },
        "description": "",
        "priority": i32::from(column.wide),
    })
}

fn columns_of(storage: &str) -> Columns {
    match storage {
        "events" => event::COLUMNS,
        "nodes" => node::COLUMNS,
        "services" => service::COLUMNS,
        other => plain::columns_of(other),
    }
}

/// How long ago an object was made.
fn age_of(object: &Value, now: Timestamp) -> Value {
    let created = crate::object::text(object, &["metadata", "creationTimestamp"]);
    json!(age(created, now))
}

#[cfg(test)]
mod tests;
