//! Which Services and Nodes the operator has paused.

use std::collections::BTreeMap;

use cloudkeel_api::names::PAUSED;

/// Reason of the Event when a pause begins, and when it ends.
pub(crate) const PAUSED_REASON: &str = "Paused";
pub(crate) const RESUMED_REASON: &str = "Resumed";

/// What pauses an object, if something does. A value that cannot be read pauses too: its author wanted
/// something to stop.
pub(crate) fn paused_by(annotations: &BTreeMap<String, String>) -> Option<String> {
    match PAUSED.get(annotations) {
        Ok(Some(true)) => Some(format!("paused by {}", PAUSED.name())),
        Ok(Some(false) | None) => None,
        Err(problem) => Some(format!("paused, because a pause cannot be read: {problem}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_no_does_not_pause() {
        for (case, value, expected) in [
            ("absent", None, None),
            ("no", Some("false"), None),
            ("yes", Some("true"), Some("paused by cloudkeel.dev/paused")),
            (
                "unreadable",
                Some("yes"),
                Some(
                    "paused, because a pause cannot be read: cloudkeel.dev/paused: \"yes\": expected `true` or `false`",
                ),
            ),
        ] {
            let value = value.map(|value| (PAUSED.name().to_owned(), value.to_owned()));
            let annotations = value.into_iter().collect();
            assert_eq!(paused_by(&annotations).as_deref(), expected, "{case}");
        }
    }
}
