//! Waiting for what must come true.

use std::time::Duration;

use tokio::time::{Instant, sleep};

const PAUSE: Duration = Duration::from_millis(100);

/// How long anything of the scenario may take. Far beyond the usual, for machines with other work.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Looks until there is something to be seen. On failure: what was waited for.
pub(crate) async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> Result<T, String>
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return Ok(seen);
        }
        if Instant::now() >= deadline {
            return Err(format!("waited {} s in vain: {what}", PATIENCE.as_secs()));
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
        assert_eq!(never, Err("waited 90 s in vain: the moon".to_owned()));
    }
}
