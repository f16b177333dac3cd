//! Why something failed, in the words of an Event and in those of a log.

use std::fmt;
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Problems, format_go_duration};

/// What went wrong, for people.
///
/// As it stands in an Event: the cause and what to do about it, in the same words as long as the cause is the
/// same, so that one outage is one Event. What differs from one attempt to the next is for the log and
/// `/status`, which show it [in full](Self::in_full).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    text: String,
    /// The same with which request it was and how often it was sent.
    with_details: String,
    advice: Option<&'static str>,
    next_try: Option<Duration>,
}

impl Cause {
    /// A cloud's error.
    pub fn of_cloud(error: &CloudError) -> Self {
        Self {
            text: error.cause(),
            with_details: error.to_string(),
            advice: error.kind().advice(),
            next_try: None,
        }
    }

    /// A Service that asks for the impossible: all of it on one line.
    pub fn of_problems(problems: &Problems) -> Self {
        let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
        Self {
            advice: ErrorKind::Invalid.advice(),
            ..Self::of_text(texts.join("; "))
        }
    }

    /// Anything else, such as a refused write.
    pub fn of_text(text: impl fmt::Display) -> Self {
        let text = text.to_string();
        Self {
            with_details: text.clone(),
            text,
            advice: None,
            next_try: None,
        }
    }

    /// Names the cloud in which it went wrong.
    #[must_use]
    pub fn in_cloud(mut self, cloud: &str) -> Self {
        self.text = format!("cloud {cloud}: {}", self.text);
        self.with_details = format!("cloud {cloud}: {}", self.with_details);
        self
    }

    /// Says when it is tried again.
    #[must_use]
    pub const fn with_next_try(mut self, after: Duration) -> Self {
        self.next_try = Some(after);
        self
    }

    /// With everything that differs from one attempt to the next.
    pub fn in_full(&self) -> String {
        let advice = self.advice.map(|advice| format!("; {advice}"));
        let next_try = self
            .next_try
            .map(|after| format!("; next try in {}", whole_seconds(after)));
        let parts = [Some(self.with_details.clone()), advice, next_try];
        parts.into_iter().flatten().collect()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

/// Seconds are exact enough for people.
fn whole_seconds(duration: Duration) -> String {
    let up = u64::from(duration.subsec_nanos() > 0);
    format_go_duration(Duration::from_secs(duration.as_secs().saturating_add(up)))
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::Problem;

    use super::*;

    /// The same outage, met by attempts that differ in all that can differ.
    fn outage(attempts: u32) -> Cause {
        let error = CloudError::new(
            "list servers",
            ErrorKind::Unavailable,
            "out of order (HTTP 503)",
        )
        .with_details(format!(
            "GET /servers, {attempts} attempts in {attempts}.0s"
        ))
        .with_request_id(format!("r-{attempts}"));
        Cause::of_cloud(&error)
            .in_cloud("fsn")
            .with_next_try(Duration::from_millis(9_500 * u64::from(attempts)))
    }

    #[test]
    fn one_outage_has_one_text_and_the_log_has_all_of_it() {
        assert_eq!(outage(1).to_string(), outage(4).to_string());
        assert_eq!(
            outage(1).to_string(),
            "cloud fsn: list servers: out of order (HTTP 503)"
        );
        assert_eq!(
            outage(4).in_full(),
            "cloud fsn: list servers: out of order (HTTP 503) (GET /servers, 4 attempts in 4.0s) \
             (request r-4); next try in 38s"
        );
    }

    #[test]
    fn what_a_person_has_to_do_is_said_in_both() {
        for (kind, advice) in [
            (
                ErrorKind::Unauthenticated,
                Some("check the cloud's credential"),
            ),
            (
                ErrorKind::Denied,
                Some("give the cloud's credential this permission"),
            ),
            (
                ErrorKind::LimitExceeded,
                Some("raise the limit in the cloud, or remove what is not used"),
            ),
            (
                ErrorKind::Invalid,
                Some("somebody has to change something first"),
            ),
            (ErrorKind::Unavailable, None),
            (ErrorKind::Timeout, None),
        ] {
            let cause = Cause::of_cloud(&CloudError::new("create", kind, "no"));
            let expected = match advice {
                Some(advice) => format!("create: no; {advice}"),
                None => "create: no".to_owned(),
            };
            assert_eq!(cause.to_string(), expected, "{kind}");
            assert_eq!(cause.in_full(), expected, "{kind}");
        }
    }

    #[test]
    fn all_mistakes_stand_on_one_line() {
        let mut problems = Problems::new();
        problems.push(Problem::new("a", "is missing"));
        problems.push(Problem::new("b", "is missing"));
        assert_eq!(
            Cause::of_problems(&problems).to_string(),
            "a: is missing; b: is missing; somebody has to change something first"
        );
    }
}
