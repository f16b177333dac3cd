//! Warnings about the same trouble, once in a while instead of with every request.

use std::time::Duration;

use super::expiring::Expiring;

/// For so long a cause is not told again.
const QUIET: Duration = Duration::from_mins(10);

/// Causes that are remembered.
const MOST_CAUSES: usize = 64;

/// Knows which causes were told lately.
pub(super) struct Complaints(Expiring<String, ()>);

impl Complaints {
    pub(super) fn new() -> Self {
        Self(Expiring::new(MOST_CAUSES))
    }

    /// Whether this cause is news. From then on, it is not for a while.
    pub(super) fn is_new(&self, cause: &str) -> bool {
        let key = cause.to_owned();
        if self.0.get(&key).is_some() {
            return false;
        }
        self.0.insert(key, (), QUIET);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cause_is_told_once_in_a_while_and_another_one_at_once() {
        let complaints = Complaints::new();
        assert!(complaints.is_new("denied"));
        assert!(!complaints.is_new("denied"));
        assert!(complaints.is_new("late"));
        tokio::time::advance(QUIET).await;
        assert!(complaints.is_new("denied"));
    }
}
