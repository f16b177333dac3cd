//! Copies and reinterpretations of an error.

use super::{CloudError, ErrorKind};

impl CloudError {
    /// A copy for another caller. The source stays with the first, because it cannot be copied.
    #[must_use]
    pub fn clone_without_source(&self) -> Self {
        let operation = self.operation().to_owned();
        let mut again = Self::new(operation, self.kind(), self.message());
        again.0.details.clone_from(&self.0.details);
        again.0.request_id.clone_from(&self.0.request_id);
        again.0.had_no_effect = self.0.had_no_effect;
        again
    }

    /// For a step that changes a resource: a resource that was observed and no longer exists has to be observed
    /// again, so [`NotFound`](ErrorKind::NotFound) becomes [`Conflict`](ErrorKind::Conflict).
    #[must_use]
    pub fn vanished(self) -> Self {
        if !self.is_not_found() {
            return self;
        }
        self.understood_as(ErrorKind::Conflict, "it vanished meanwhile")
    }

    /// For a step that creates a resource whose name was free when observed: the cloud does not show yet what it
    /// has, such as the resource of an attempt whose response was lost. Observing again later is all that helps, so
    /// [`AlreadyExists`](ErrorKind::AlreadyExists) becomes [`Busy`](ErrorKind::Busy).
    #[must_use]
    pub fn not_shown_yet(self) -> Self {
        if self.kind() != ErrorKind::AlreadyExists {
            return self;
        }
        self.understood_as(ErrorKind::Busy, "the cloud does not show it yet")
    }

    /// The same, with a subject before the message.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    fn understood_as(self, kind: ErrorKind, why: &str) -> Self {
        let operation = self.operation().to_owned();
        let mut anew = Self::new(operation, kind, format!("{why}: {}", self.message()));
        anew.0.details.clone_from(&self.0.details);
        anew.0.request_id.clone_from(&self.0.request_id);
        anew.with_source(self)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn error(kind: ErrorKind) -> CloudError {
        CloudError::new("change", kind, "no such thing")
            .with_details("2 attempts")
            .with_request_id("r-1")
    }

    #[test]
    fn a_clone_shows_the_same_text() {
        let first = error(ErrorKind::Denied).without_effect();
        let again = first.clone_without_source();
        assert!(again.had_no_effect());
        assert_eq!(again.to_string(), first.to_string());
        assert_eq!(again.kind(), first.kind());
    }

    #[test]
    fn only_what_is_missing_vanished_and_only_what_is_there_is_not_shown() {
        let vanished: fn(CloudError) -> CloudError = CloudError::vanished;
        for (case, anew, kind, expected) in [
            (
                "missing",
                vanished,
                ErrorKind::NotFound,
                ErrorKind::Conflict,
            ),
            ("denied", vanished, ErrorKind::Denied, ErrorKind::Denied),
            (
                "there",
                CloudError::not_shown_yet,
                ErrorKind::AlreadyExists,
                ErrorKind::Busy,
            ),
            (
                "missing when made",
                CloudError::not_shown_yet,
                ErrorKind::NotFound,
                ErrorKind::NotFound,
            ),
        ] {
            let reinterpreted = anew(error(kind));
            assert_eq!(reinterpreted.kind(), expected, "{case}");
            assert_eq!(reinterpreted.request_id(), Some("r-1"), "{case}");
            let cause = reinterpreted.source().map(ToString::to_string);
            assert_eq!(cause.is_some(), kind != expected, "{case}");
        }
    }
}
