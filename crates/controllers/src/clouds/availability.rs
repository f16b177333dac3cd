//! Whether the provider of a cloud could be built. One that could not is stood in for, and tried again.

use cloudkeel_api::{CloudError, ErrorKind};
use jiff::Timestamp;
use parking_lot::RwLock;

/// Why a cloud has no provider yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Since when it was tried.
    pub since: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// What the last attempt ended with.
    pub kind: ErrorKind,
    /// The same for people.
    pub why: String,
}

impl Unavailable {
    /// The error that every call to the cloud ends with. It never says anything about an object of the cloud: one that
    /// the provider did not find while it was built is no reason to delete another.
    pub fn error(&self) -> CloudError {
        let kind = match self.kind {
            kind @ (ErrorKind::Unauthenticated | ErrorKind::Denied) => kind,
            _ => ErrorKind::Unavailable,
        };
        let message = format!("the cloud is unavailable since the start: {}", self.why);
        CloudError::new("connect", kind, message)
    }
}

/// Whether a cloud has its provider.
#[derive(Debug, Default)]
pub struct Availability(RwLock<Option<Unavailable>>);

impl Availability {
    /// Why the cloud is unavailable, if it is.
    pub fn unavailable(&self) -> Option<Unavailable> {
        self.0.read().clone()
    }

    /// An error if the cloud is unavailable.
    pub fn check(&self) -> Result<(), CloudError> {
        match &*self.0.read() {
            Some(unavailable) => Err(unavailable.error()),
            None => Ok(()),
        }
    }

    /// Another attempt failed at this moment.
    pub fn failed(&self, now: Timestamp, kind: ErrorKind, why: impl Into<String>) {
        let mut current = self.0.write();
        let (since, attempts) = match &*current {
            Some(before) => (before.since, before.attempts),
            None => (now, 0),
        };
        *current = Some(Unavailable {
            since,
            attempts: attempts.saturating_add(1),
            kind,
            why: why.into(),
        });
    }

    /// The provider was built.
    pub fn recovered(&self) {
        *self.0.write() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_since_the_first() {
        let availability = Availability::default();
        assert_eq!(availability.unavailable(), None);
        let at = |second| Timestamp::from_second(second).unwrap();
        availability.failed(at(1), ErrorKind::Timeout, "no answer");
        availability.failed(at(5), ErrorKind::Unauthenticated, "token");
        let expected = Unavailable {
            since: at(1),
            attempts: 2,
            kind: ErrorKind::Unauthenticated,
            why: "token".to_owned(),
        };
        assert_eq!(availability.unavailable(), Some(expected));
        availability.recovered();
        assert_eq!(availability.unavailable(), None);
    }
}
