//! Panics outside of the queues. Each is a bug in the program, and concerns as little as possible.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind};
use futures::FutureExt as _;
use tokio::time::Instant;
use tracing::error;

use super::Backoff;
use crate::log_messages::LOOP_PANICKED;

/// A loop that ran for this long since it panicked has recovered.
const RECOVERED_AFTER: Duration = Duration::from_mins(10);

/// When a loop that panicked is started again.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_mins(5),
};

/// The text of a panic that was caught.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it did not say why")
}

/// The answer of a cloud. A panic of its provider is an error like any other, which concerns this cloud alone.
pub async fn contain_call<T>(
    operation: &'static str,
    call: impl Future<Output = Result<T, CloudError>>,
) -> Result<T, CloudError> {
    let answer = AssertUnwindSafe(call).catch_unwind().await;
    answer.unwrap_or_else(|panic| Err(panicked(operation, panic.as_ref())))
}

/// The error of a provider that panicked.
pub fn panicked(operation: &'static str, panic: &(dyn Any + Send)) -> CloudError {
    let message = format!("the provider panicked: {}", panic_text(panic));
    CloudError::new(operation, ErrorKind::Other, message)
}

/// The result of a short piece of work; what the panic said if it panicked.
pub fn contain<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_text(panic.as_ref()).to_owned())
}

/// Runs a loop until it returns. After a panic, which is reported, it begins anew, later each time.
pub async fn restart_after_panics<T, W: Future<Output = T>>(
    name: &str,
    mut on_panic: impl FnMut(&str),
    mut begin: impl FnMut() -> W,
) -> T {
    let mut failures = 0;
    loop {
        let began = Instant::now();
        // On the heap: what loops do is large.
        let work = AssertUnwindSafe(Box::pin(begin()));
        let panic = match work.catch_unwind().await {
            Ok(done) => return done,
            Err(panic) => panic_text(panic.as_ref()).to_owned(),
        };
        let has_recovered = began.elapsed() >= RECOVERED_AFTER;
        failures = if has_recovered { 1 } else { failures + 1 };
        let retry_after = BACKOFF.pause(failures);
        error!(r#loop = name, panic, ?retry_after, "{LOOP_PANICKED}");
        on_panic(&panic);
        tokio::time::sleep(retry_after).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_panics_begins_anew_later_each_time() {
        let began = Instant::now();
        let (runs, reported) = (Cell::new(0), Cell::new(0));
        let run = || {
            runs.set(runs.get() + 1);
            let run = runs.get();
            async move {
                assert!(run > 3, "planted {run}");
                run
            }
        };
        let report = |panic: &str| {
            assert!(panic.starts_with("planted"), "{panic}");
            reported.set(reported.get() + 1);
        };
        let done = restart_after_panics("test", report, run).await;
        assert_eq!((done, reported.get()), (4, 3));
        let pauses: Duration = (1..=3).map(|failures| BACKOFF.pause(failures)).sum();
        assert_eq!(began.elapsed(), pauses);
    }

    #[tokio::test]
    async fn a_provider_that_panics_has_failed() {
        let call = async { panic!("planted") };
        let answer: Result<(), _> = contain_call("list instances", call).await;
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Other);
        let text = error.to_string();
        assert!(text.contains("the provider panicked: planted"), "{text}");
    }
}
