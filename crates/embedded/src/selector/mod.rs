//! Which objects a list or a watch is about.

mod fields;
mod labels;

use serde_json::Value;

use crate::kinds::Kind;
use crate::object::{at, name, namespace};
use crate::refusal::Refusal;
use fields::FieldSelector;
use labels::LabelSelector;

/// A namespace or all of them, and selectors for labels and fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    pub(crate) fn new(
        kind: &Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Refusal> {
        let fields = FieldSelector::parse(fields.unwrap_or_default())?;
        let known = kind.rules.selectable(&Value::Null);
        for key in fields.keys() {
            let of_metadata =
                key == "metadata.name" || (kind.namespaced && key == "metadata.namespace");
            if !of_metadata && !known.iter().any(|(known, _)| *known == key) {
                return Err(Refusal::bad_request(format!(
                    "field label not supported: {key}"
                )));
            }
        }
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            labels: LabelSelector::parse(labels.unwrap_or_default())?,
            fields,
        })
    }

    /// The object of this name alone.
    pub(crate) fn only(mut self, name: &str) -> Self {
        self.fields = self.fields.and_equal("metadata.name", name);
        self
    }

    /// Whether it asks for more than a namespace.
    pub(crate) fn selects(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    pub(crate) fn matches(&self, kind: &Kind, object: &Value) -> bool {
        if self
            .namespace
            .as_deref()
            .is_some_and(|wanted| wanted != namespace(object))
        {
            return false;
        }
        if !self.labels.matches(at(object, &["metadata", "labels"])) {
            return false;
        }
        self.fields.is_empty() || {
            let mut fields = kind.rules.selectable(object);
            fields.push(("metadata.name", name(object).to_owned()));
            fields.push(("metadata.namespace", namespace(object).to_owned()));
            self.fields.matches(&fields)
        }
    }
}

#[cfg(test)]
mod tests;
