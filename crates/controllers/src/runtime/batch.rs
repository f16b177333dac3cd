//! Merges simultaneous requests into one call.

use std::future::Future;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How long the first request waits for others.
const GATHER: Duration = Duration::from_millis(20);

type Waiting<Q, A> = Vec<(Q, oneshot::Sender<A>)>;

/// Requests that wait to be sent together.
pub(crate) struct Batch<Q, A>(Mutex<Waiting<Q, A>>);

impl<Q, A> Default for Batch<Q, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Q: Clone, A> Batch<Q, A> {
    /// The answer to a request. The first caller of a moment sends the requests of all with `send`, which has one
    /// answer for each, in their order. `None` if there is none for this one.
    pub(crate) async fn ask<F>(&self, request: Q, send: impl Fn(Vec<Q>) -> F) -> Option<A>
    where
        F: Future<Output = Vec<A>>,
    {
        loop {
            let (sender, mut answer) = oneshot::channel();
            if self.is_first((request.clone(), sender)) {
                let gathering = Gathering {
                    batch: self,
                    is_done: false,
                };
                let gathered = gathering.gather().await;
                let (requests, senders): (Vec<_>, Vec<_>) = gathered.into_iter().unzip();
                for (sender, answer) in senders.into_iter().zip(send(requests).await) {
                    // A caller that no longer waits needs no answer.
                    let _ = sender.send(answer);
                }
                return answer.try_recv().ok();
            }
            if let Ok(answer) = answer.await {
                return Some(answer);
            }
            // The caller that was to send it was cancelled.
        }
    }

    /// Adds a request, and says whether it is the first of a moment.
    fn is_first(&self, request: (Q, oneshot::Sender<A>)) -> bool {
        let mut waiting = self.0.lock();
        waiting.push(request);
        waiting.len() == 1
    }
}

/// Drops all requests if the caller that gathers them is cancelled: then the others ask again.
struct Gathering<'a, Q: Clone, A> {
    batch: &'a Batch<Q, A>,
    is_done: bool,
}

impl<Q: Clone, A> Gathering<'_, Q, A> {
    async fn gather(mut self) -> Waiting<Q, A> {
        tokio::time::sleep(GATHER).await;
        self.is_done = true;
        std::mem::take(&mut *self.batch.0.lock())
    }
}

impl<Q: Clone, A> Drop for Gathering<'_, Q, A> {
    fn drop(&mut self) {
        if !self.is_done {
            self.batch.0.lock().clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with twice the number, and records what it was sent.
    #[derive(Default)]
    struct Doubler {
        batch: Batch<u32, u32>,
        sent: Mutex<Vec<Vec<u32>>>,
    }

    impl Doubler {
        async fn ask(&self, number: u32) -> Option<u32> {
            let send = |numbers: Vec<u32>| async move {
                self.sent.lock().push(numbers.clone());
                tokio::time::sleep(Duration::from_secs(1)).await;
                let even = numbers.iter().map(|number| number * 2);
                even.take_while(|number| *number != 14).collect()
            };
            self.batch.ask(number, send).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_a_moment_share_one_call_and_later_ones_the_next() {
        let doubler = Doubler::default();
        let late = async {
            tokio::time::sleep(GATHER * 2).await;
            futures::join!(doubler.ask(4), doubler.ask(5))
        };
        let answers = futures::join!(doubler.ask(1), doubler.ask(2), late);
        assert_eq!(answers, (Some(2), Some(4), (Some(8), Some(10))));
        assert_eq!(*doubler.sent.lock(), [vec![1, 2], vec![4, 5]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_whose_sender_was_cancelled_is_sent_again() {
        for (case, is_sent) in [("while it gathers", false), ("while it sends", true)] {
            let doubler = Doubler::default();
            let mut first = Box::pin(doubler.ask(1));
            let mut second = Box::pin(doubler.ask(2));
            assert!(futures::poll!(&mut first).is_pending());
            assert!(futures::poll!(&mut second).is_pending());
            if is_sent {
                tokio::time::advance(GATHER).await;
                assert!(futures::poll!(&mut first).is_pending());
            }
            drop(first);
            assert_eq!(second.await, Some(4), "{case}");
            assert_eq!(doubler.sent.lock().last().unwrap(), &[2], "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_answer_is_none() {
        let doubler = Doubler::default();
        let answers = futures::join!(doubler.ask(1), doubler.ask(7));
        assert_eq!(answers, (Some(2), None));
        assert_eq!(*doubler.sent.lock(), [vec![1, 7], vec![7]]);
    }
}
