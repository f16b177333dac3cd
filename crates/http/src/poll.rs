//! Waits for a long-running operation of the cloud, so that providers need no loops and sleeps.

use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind};
use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::request::Request;
use crate::response::Response;

/// A cloud that says "now" must not be polled without a pause.
const MIN_PAUSE: Duration = Duration::from_millis(100);

/// The timeout of the last request, even if time is nearly up.
const MIN_ATTEMPT: Duration = Duration::from_secs(1);

/// When to poll, and when to give up. The cloud's own `Retry-After` overrides the pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollSchedule {
    first: Duration,
    pause: Duration,
    longest: Duration,
    give_up: Duration,
}

impl PollSchedule {
    /// Polls at once and then with this pause, for five minutes.
    pub const fn every(pause: Duration) -> Self {
        Self {
            first: Duration::ZERO,
            pause,
            longest: pause,
            give_up: Duration::from_mins(5),
        }
    }

    /// Waits before the first request, because the operation has only just started.
    #[must_use]
    pub const fn starting_after(mut self, first: Duration) -> Self {
        self.first = first;
        self
    }

    /// Lets the pauses grow by half each time, up to this one.
    #[must_use]
    pub const fn growing_to(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Gives up after this long.
    #[must_use]
    pub const fn within(mut self, give_up: Duration) -> Self {
        self.give_up = give_up;
        self
    }
}

/// The result of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress<T> {
    /// It is done.
    Done(T),
    /// Still in progress; its state in the cloud's own words, for the error if it never ends.
    Pending(String),
}

impl Client {
    /// Repeats `request` until `check` says that it is done.
    ///
    /// Gives up with [`ErrorKind::Timeout`] and the last state as soon as the next request would be too late. A
    /// throttled request is postponed; any other error ends the polling.
    pub async fn poll_until<T>(
        &self,
        request: Request,
        schedule: PollSchedule,
        mut check: impl FnMut(&Response) -> Result<Progress<T>, CloudError>,
    ) -> Result<T, CloudError> {
        let started = Instant::now();
        let mut pause = schedule.pause;
        let mut state = "not polled yet".to_owned();
        let mut next = schedule.first;
        let mut looks = 0;
        loop {
            let left = schedule.give_up.saturating_sub(started.elapsed());
            if next > left {
                let waited = started.elapsed().as_secs();
                let message = format!(
                    "still {state} after {looks} looks in {waited}s; the next look in {next:?} would be \
                     after the limit of {:?}",
                    schedule.give_up
                );
                let operation = request.operation().to_owned();
                return Err(CloudError::new(operation, ErrorKind::Timeout, message));
            }
            sleep(next).await;
            looks += 1;
            let left = schedule.give_up.saturating_sub(started.elapsed());
            let cached = request.clone().at_most(left.max(MIN_ATTEMPT));
            next = match self.send_ref(&cached).await {
                Ok(response) => match check(&response)? {
                    Progress::Done(value) => return Ok(value),
                    Progress::Pending(now) => {
                        state = response.quoted(&now);
                        response.retry_after().unwrap_or(pause)
                    }
                },
                Err(error) => match error.kind() {
                    ErrorKind::Throttled { retry_after } => retry_after.unwrap_or(pause),
                    _ => return Err(error),
                },
            };
            next = next.max(MIN_PAUSE);
            pause = (pause * 3 / 2).min(schedule.longest);
        }
    }
}

#[cfg(test)]
mod tests;
