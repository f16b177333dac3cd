//! Work that is dropped in the middle, at each of its awaits.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use futures::future::BoxFuture;

use super::adapter::Stop;
use super::check::Done;
use super::env::TestEnv;

/// More awaits than any work of the kit should take.
const MOST_POLLS: usize = 600;

/// A step of a scenario.
pub(super) type Step<T> = for<'a> fn(&'a TestEnv<'a>, &'a T) -> BoxFuture<'a, Done>;

/// What is cancelled, and what must be true once it was repeated.
pub(super) struct Cancellation<T> {
    /// What is there before.
    pub(super) prepare: for<'a> fn(&'a TestEnv<'a>) -> BoxFuture<'a, Result<T, Stop>>,
    /// The work that is dropped.
    pub(super) work: Step<T>,
    /// Repeats the work and checks where it ends.
    pub(super) repeat: Step<T>,
}

/// Drops the work at its first await, at its second, and so on until it is done, each time on a cloud of its own.
pub(super) async fn at_each_await<T>(env: &TestEnv<'_>, scenario: Cancellation<T>) -> Done {
    for polls in 1..=MOST_POLLS {
        let env = env.another().await?;
        let state = (scenario.prepare)(&env).await?;
        let done = polled_at_most((scenario.work)(&env, &state), polls).await;
        let repeated = (scenario.repeat)(&env, &state).await;
        repeated.map_err(|stop| match stop {
            Stop::Failed(why) => Stop::Failed(format!("dropped at await {polls}: {why}")),
            stop => stop,
        })?;
        match done {
            Some(done) if polls > 1 => return done,
            Some(_) => return Err(Stop::not_playable("everything is done without an await")),
            None => {}
        }
    }
    let message = format!("it takes more than {MOST_POLLS} awaits");
    Err(Stop::failed(message))
}

/// Drives a future until it is done or was polled this often, and drops it then.
async fn polled_at_most<T>(work: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut work = pin!(work);
    let mut polls = 0;
    poll_fn(|context| {
        polls += 1;
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if polls >= times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
