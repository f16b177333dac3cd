//! Names and labels of resources: what they may be, and new ones. A name is used once in a project, by resources of the
//! same kind.

use cloudkeel_emulation::history::{Table, View};
use cloudkeel_emulation::list::{Labels, Listed};
use cloudkeel_emulation::selector::{is_label_key, is_label_value};
use serde_json::json;

use crate::refusal::Refusal;

/// Refuses a new resource because of its name or its labels.
pub(super) fn check_new<T: Listed>(
    table: &Table<T>,
    name: &str,
    labels: &Labels,
) -> Result<(), Refusal> {
    check_labels(labels)?;
    check_free(table, name, None)
}

/// Refuses a name that is empty, or that another resource has already.
pub(crate) fn check_free<T: Listed>(
    table: &Table<T>,
    name: &str,
    own: Option<u64>,
) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::invalid("name", "must not be empty"));
    }
    let own = own.map(|id| json!(id));
    let others = table.values(View::Now);
    let mut others = others.filter(|other| other.field("id") != own);
    if others.any(|other| other.field("name") == Some(json!(name))) {
        return Err(Refusal::not_unique("name"));
    }
    Ok(())
}

/// Refuses labels that the API does not take.
pub(super) fn check_labels(labels: &Labels) -> Result<(), Refusal> {
    for (key, value) in labels {
        let problem = if !is_label_key(key) {
            format!("invalid label key {key:?}")
        } else if key.starts_with("hetzner.cloud/") {
            format!("label key {key:?} is reserved")
        } else if !is_label_value(value) {
            format!("invalid label value {value:?}")
        } else {
            continue;
        };
        return Err(Refusal::invalid("labels", problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_words_and_none_of_hetzners_own() {
        for (key, value, good) in [
            ("env", "prod", true),
            ("hcloud-ccm/service-uid", "0b1c-2d", true),
            ("", "x", false),
            ("a", "x y", false),
            ("hetzner.cloud/x", "y", false),
        ] {
            let labels = Labels::from([(key.to_owned(), value.to_owned())]);
            assert_eq!(check_labels(&labels).is_ok(), good, "{key}={value}");
        }
    }
}
