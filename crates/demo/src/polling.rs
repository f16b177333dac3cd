//! Waits for conditions.

use std::time::Duration;

use tokio::time::{Instant, sleep};

const PAUSE: Duration = Duration::from_millis(100);

/// How long any step of the scenario may take. Far more than usual, for busy hosts.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

/// Polls until there is a value. On failure: what was waited for.
pub(crate) async fn until<T, F>(what: &str, mut poll: impl FnMut() -> F) -> Result<T, String>
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(seen) = poll().await {
            return Ok(seen);
        }
        if Instant::now() >= deadline {
            return Err(format!("timed out after {} s: {what}", TIMEOUT.as_secs()));
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_what_is_seen_or_says_what_was_not() {
        let mut looks = 0;
        let seen = until("the third look", || {
            looks += 1;
            std::future::ready((looks == 3).then_some(looks))
        });
        assert_eq!(seen.await, Ok(3));
        let never = until("the moon", || std::future::ready(None::<()>)).await;
        assert_eq!(never, Err("timed out after 90 s: the moon".to_owned()));
    }
}
