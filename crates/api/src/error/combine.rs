//! Combines several errors of one attempt into one.

use std::borrow::Cow;
use std::time::Duration;

use super::{CloudError, ErrorKind, Retry};

/// An Event has room for about this many causes.
const SHOWN: usize = 5;

impl CloudError {
    /// Combines the errors of one attempt: every cause is named once, and the attempt is retried when the first of
    /// them allows it. `None` if there are none.
    pub fn combine(operation: impl Into<Cow<'static, str>>, mut errors: Vec<Self>) -> Option<Self> {
        if errors.len() < 2 {
            return errors.pop();
        }
        let kind = soonest(&errors)?;
        let mut causes: Vec<String> = Vec::new();
        let mut details: Vec<String> = Vec::new();
        for error in &errors {
            let cause = error.cause();
            if !causes.contains(&cause) {
                causes.push(cause);
                details.extend(error.all_details());
            }
        }
        let more = causes.len().saturating_sub(SHOWN);
        causes.truncate(SHOWN);
        details.truncate(SHOWN);
        if more > 0 {
            causes.push(format!("and {more} more"));
        }
        let mut combined = Self::new(operation, kind, causes.join("; "));
        combined.0.details = Some(details.join("; ")).filter(|details| !details.is_empty());
        Some(combined)
    }

    /// Details and request ID, if known.
    pub(crate) fn all_details(&self) -> Option<String> {
        let request = self.request_id().map(|id| format!("request {id}"));
        let all: Vec<String> = self.0.details.clone().into_iter().chain(request).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// The kind that is retried soonest. Of several waits the longest counts, because all of them were requested.
fn soonest(errors: &[CloudError]) -> Option<ErrorKind> {
    let waits = errors.iter().filter_map(|error| match error.retry() {
        Retry::After(wait) => Some(wait),
        Retry::Backoff | Retry::UserAction | Retry::Never => None,
    });
    let longest: Option<Duration> = waits.max();
    if longest.is_some() {
        return Some(ErrorKind::Throttled {
            retry_after: longest,
        });
    }
    let first = |retry: Retry| {
        let mut alike = errors.iter().filter(|error| error.retry() == retry);
        // A missing resource may be about to be deleted, which is no reason to hide the other errors.
        let first = alike.clone().next();
        alike.find(|error| !error.is_not_found()).or(first)
    };
    let soonest = first(Retry::Backoff).or_else(|| first(Retry::UserAction));
    soonest.or(errors.first()).map(CloudError::kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kinds: &[ErrorKind]) -> CloudError {
        let errors = kinds.iter().enumerate();
        let errors = errors.map(|(number, kind)| {
            CloudError::new("add target", *kind, format!("refused {number}")).with_request_id("r")
        });
        CloudError::combine("apply", errors.collect()).unwrap()
    }

    #[test]
    fn the_attempt_is_repeated_as_soon_as_one_of_them_asks_for() {
        let throttled = |seconds| ErrorKind::Throttled {
            retry_after: Some(Duration::from_secs(seconds)),
        };
        for (case, kinds, expected) in [
            (
                "needs a change by the operator",
                &[ErrorKind::Denied, ErrorKind::Invalid][..],
                ErrorKind::Denied,
            ),
            (
                "one may pass by itself",
                &[ErrorKind::Invalid, ErrorKind::Unavailable],
                ErrorKind::Unavailable,
            ),
            (
                "one is only missing",
                &[ErrorKind::NotFound, ErrorKind::Unavailable],
                ErrorKind::Unavailable,
            ),
            (
                "the cloud asks for a pause",
                &[ErrorKind::Unavailable, throttled(3), throttled(7)],
                throttled(7),
            ),
            (
                "a stop of one says nothing about the others",
                &[ErrorKind::Cancelled, ErrorKind::Invalid],
                ErrorKind::Invalid,
            ),
        ] {
            assert_eq!(of(kinds).kind(), expected, "{case}");
        }
    }

    #[test]
    fn every_cause_is_named_once_and_many_are_counted() {
        let same = || CloudError::new("change type", ErrorKind::Invalid, "no such type");
        let error = CloudError::combine("apply", vec![same(), same(), same()]).unwrap();
        assert_eq!(error.to_string(), "apply: change type: no such type");

        let many = of(&[ErrorKind::Invalid; 7]);
        let text = many.message();
        assert!(
            text.starts_with("add target: refused 0; add target: refused 1; "),
            "{text}"
        );
        assert!(text.ends_with("refused 4; and 2 more"), "{text}");
        let full = many.to_string();
        assert!(
            full.ends_with("(request r; request r; request r; request r; request r)"),
            "{full}"
        );
    }

    #[test]
    fn one_error_stays_as_it_is_and_none_is_none() {
        assert!(CloudError::combine("apply", vec![]).is_none());
        let one = vec![CloudError::invalid("read annotations", "bad")];
        let one = CloudError::combine("apply", one).unwrap();
        assert_eq!(one.operation(), "read annotations");
    }
}
