//! The settings of an election.

use std::time::Duration;

use cloudkeel_api::{Problem, Problems, format_go_duration};

/// The longest pause of a candidate is the retry period times one plus this.
pub(super) const JITTER: f64 = 1.2;

/// A shorter period would be a load for the API server.
const MIN_RETRY_PERIOD: Duration = Duration::from_millis(100);

/// With a shorter deadline, one slow response would end a leadership.
const MIN_RENEW_DEADLINE: Duration = Duration::from_secs(1);

/// Which lease, which candidate, and which durations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionConfig {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The identity of this candidate, such as [`unique_identity`](super::unique_identity) returns.
    pub identity: String,
    /// The source of our events, such as `cloud-controller-manager`.
    pub component: String,
    /// How long other candidates wait after the last renewal they observed. It is stored in whole seconds, rounded
    /// up.
    pub lease_duration: Duration,
    /// How long we may write after the start of our last successful renewal.
    pub renew_deadline: Duration,
    /// The pause between two renewals; candidates pause up to 2.2 times as long between two attempts.
    pub retry_period: Duration,
    /// Whether to watch the lease besides polling it, so that a release is seen at once.
    pub watch: bool,
    /// Whether to release the lease when the election is stopped. Without it, the next leader waits for the lease to
    /// expire, as with the Go framework.
    pub release_on_stop: bool,
}

impl ElectionConfig {
    /// The durations of the Go framework: 15 s, 10 s and 2 s.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            component: "cloud-controller-manager".to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            watch: true,
            release_on_stop: true,
        }
    }

    /// Reports all problems.
    pub fn validate(&self) -> Result<(), Problems> {
        let mut problems = Problems::new();
        for (key, text) in [
            ("--leader-elect-resource-namespace", &self.namespace),
            ("--leader-elect-resource-name", &self.name),
            ("identity", &self.identity),
        ] {
            if text.is_empty() {
                problems.push(Problem::new(key, "is required"));
            }
        }
        self.check_durations(&mut problems);
        problems.into_result()
    }

    fn check_durations(&self, problems: &mut Problems) {
        let mut require = |holds: bool, key: &str, value: Duration, expected: String| {
            if !holds {
                let value = format_go_duration(value);
                problems.push(Problem::unexpected(key, value, expected));
            }
        };
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        require(
            lease > renew,
            "--leader-elect-lease-duration",
            lease,
            format!(
                "more than the renew deadline, {}",
                format_go_duration(renew)
            ),
        );
        require(
            lease.as_secs() < i32::MAX as u64,
            "--leader-elect-lease-duration",
            lease,
            format!("less than {} seconds", i32::MAX),
        );
        require(
            renew >= MIN_RENEW_DEADLINE,
            "--leader-elect-renew-deadline",
            renew,
            format!("at least {}", format_go_duration(MIN_RENEW_DEADLINE)),
        );
        require(
            renew.as_secs_f64() > retry.as_secs_f64() * JITTER,
            "--leader-elect-renew-deadline",
            renew,
            format!(
                "more than {JITTER} times the retry period, {}",
                format_go_duration(retry)
            ),
        );
        require(
            retry >= MIN_RETRY_PERIOD,
            "--leader-elect-retry-period",
            retry,
            format!("at least {}", format_go_duration(MIN_RETRY_PERIOD)),
        );
    }

    /// The timeout of one request: a request that hangs must not cost the leadership.
    pub fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }

    /// The lease duration as it is stored. Rounding down would let others in while this one still writes.
    pub(super) fn lease_seconds(&self) -> i32 {
        let whole = self.lease_duration.as_secs();
        let seconds = whole + u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(seconds).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(lease: u64, renew: u64, retry: u64) -> ElectionConfig {
        ElectionConfig {
            lease_duration: Duration::from_millis(lease),
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
            ..ElectionConfig::new("kube-system", "cloud-controller-manager", "me")
        }
    }

    #[test]
    fn the_pace_of_the_go_framework_is_valid() {
        let config = ElectionConfig::new("kube-system", "cloud-controller-manager", "me");
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(config.request_timeout(), Duration::from_secs(5));
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let broken = ElectionConfig {
            namespace: String::new(),
            identity: String::new(),
            ..config(10_000, 10_000, 9_000)
        };
        assert_eq!(
            broken.validate().unwrap_err().to_string(),
            "--leader-elect-resource-namespace: is required\n\
             identity: is required\n\
             --leader-elect-lease-duration: \"10s\": expected more than the renew deadline, 10s\n\
             --leader-elect-renew-deadline: \"10s\": expected more than 1.2 times the retry period, 9s"
        );
    }

    #[test]
    fn durations_must_leave_room_for_each_other() {
        for (case, config, valid) in [
            ("short", config(3_000, 2_000, 500), true),
            (
                "the lease ends with the deadline",
                config(3_000, 3_000, 500),
                false,
            ),
            (
                "the deadline is one jittered retry",
                config(15_000, 2_400, 2_000),
                false,
            ),
            ("just above it", config(15_000, 2_401, 2_000), true),
            (
                "a deadline of less than a second",
                config(3_000, 999, 100),
                false,
            ),
            ("a retry that hammers", config(3_000, 2_000, 99), false),
            ("nothing at all", config(0, 0, 0), false),
            (
                "a lease that cannot be stored",
                config(u64::MAX, 2_000, 500),
                false,
            ),
        ] {
            assert_eq!(config.validate().is_ok(), valid, "{case}");
        }
    }

    #[test]
    fn a_lease_is_stored_in_whole_seconds_that_are_never_too_few() {
        for (millis, stored) in [(15_000, 15), (15_001, 16), (2_999, 3)] {
            assert_eq!(
                config(millis, 1_000, 500).lease_seconds(),
                stored,
                "{millis} ms"
            );
        }
    }

    #[test]
    fn a_request_gets_half_the_deadline_but_at_least_a_second() {
        for (renew, timeout) in [(10_000, 5_000), (1_500, 1_000)] {
            let config = config(15_000, renew, 500);
            assert_eq!(config.request_timeout(), Duration::from_millis(timeout));
        }
    }
}
