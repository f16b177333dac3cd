//! The same error, told once more or understood anew.

use super::{CloudError, ErrorKind};

impl CloudError {
    /// The same for one more who asked. The cause stays with the first, for it cannot be copied.
    #[must_use]
    pub fn retold(&self) -> Self {
        let operation = self.operation().to_owned();
        let mut again = Self::new(operation, self.kind(), self.message());
        again.0.details.clone_from(&self.0.details);
        again.0.request_id.clone_from(&self.0.request_id);
        again.0.had_no_effect = self.0.had_no_effect;
        again
    }

    /// For a step that changes a thing: what was there when we looked and is not any more has to be looked
    /// at again, so [`NotFound`](ErrorKind::NotFound) becomes [`Conflict`](ErrorKind::Conflict).
    #[must_use]
    pub fn vanished(self) -> Self {
        if !self.is_not_found() {
            return self;
        }
        self.understood_as(ErrorKind::Conflict, "it vanished meanwhile")
    }

    /// For a step that makes a thing whose name was free when we looked: the cloud does not show yet what
    /// it has, such as the thing of an attempt whose answer was lost. Looking again later is all that
    /// helps, so [`AlreadyExists`](ErrorKind::AlreadyExists) becomes [`Busy`](ErrorKind::Busy).
    #[must_use]
    pub fn not_shown_yet(self) -> Self {
        if self.kind() != ErrorKind::AlreadyExists {
            return self;
        }
        self.understood_as(ErrorKind::Busy, "the cloud does not show it yet")
    }

    /// The same, with what it is about before the message.
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
    fn what_is_told_again_is_the_same() {
        let first = error(ErrorKind::Denied).without_effect();
        let again = first.retold();
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
            let told = anew(error(kind));
            assert_eq!(told.kind(), expected, "{case}");
            assert_eq!(told.request_id(), Some("r-1"), "{case}");
            let cause = told.source().map(ToString::to_string);
            assert_eq!(cause.is_some(), kind != expected, "{case}");
        }
    }
}
