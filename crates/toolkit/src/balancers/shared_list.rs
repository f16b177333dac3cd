//! One list of all balancers in place of many look-ups, where that is cheaper.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cloudkeel_api::CloudError;

use crate::SharedRead;

/// The balancers of a cloud, as they were last listed.
///
/// Finding the balancer of a Service takes a look-up or two. When many workers ask at once, as after a start or
/// when a Node is deleted, one list serves all of them. In a big project a list has many pages, so it is only
/// read when enough workers ask.
#[derive(Debug)]
pub struct SharedList<B> {
    list: SharedRead<Vec<B>>,
    per_page: usize,
    /// How many look-ups all current callers would make.
    wanted: AtomicUsize,
}

impl<B> SharedList<B> {
    /// A list that comes in pages of this size.
    pub fn in_pages_of(per_page: usize) -> Self {
        Self {
            list: SharedRead::default(),
            per_page,
            wanted: AtomicUsize::new(0),
        }
    }

    /// The caller is about to find a balancer, which takes so many look-ups.
    pub fn begin(&self, lookups: usize) -> PendingLookups<'_, B> {
        let all = self.wanted.fetch_add(lookups, Ordering::Relaxed) + lookups;
        PendingLookups {
            list: self,
            own: lookups,
            all,
        }
    }

    /// All balancers, read after this question.
    pub async fn all<R>(&self, read: impl FnOnce() -> R + Send) -> Result<Arc<Vec<B>>, CloudError>
    where
        B: Send + Sync,
        R: Future<Output = Result<Vec<B>, CloudError>> + Send,
    {
        self.list.fresh(read).await
    }

    /// How many calls a list takes. One, as far as is known, until one was made.
    fn pages(&self) -> usize {
        let last = self.list.latest().map_or(0, |last| last.len());
        last.div_ceil(self.per_page.max(1)).max(1)
    }
}

/// The look-ups of a caller that is finding a balancer. They count until this is dropped.
#[derive(Debug)]
pub struct PendingLookups<'a, B> {
    list: &'a SharedList<B>,
    own: usize,
    /// The look-ups of all callers when this one began, its own among them.
    all: usize,
}

impl<B> PendingLookups<'_, B> {
    /// Whether a list costs no more calls than the look-ups of all current callers.
    pub fn list_is_cheaper(&self) -> bool {
        self.list.pages() <= self.all
    }
}

impl<B> Drop for PendingLookups<'_, B> {
    fn drop(&mut self) {
        self.list.wanted.fetch_sub(self.own, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A cloud with so many balancers, which counts how often they are listed.
    struct Cloud {
        balancers: Vec<u32>,
        lists: AtomicUsize,
        shared: SharedList<u32>,
    }

    impl Cloud {
        fn with(balancers: u32) -> Self {
            Self {
                balancers: (0..balancers).collect(),
                lists: AtomicUsize::new(0),
                shared: SharedList::in_pages_of(50),
            }
        }

        async fn read(&self) -> Result<Vec<u32>, CloudError> {
            self.lists.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(self.balancers.clone())
        }

        async fn ask(&self, lookups: usize) -> bool {
            let pending = self.shared.begin(lookups);
            if pending.list_is_cheaper() {
                self.shared.all(|| self.read()).await.unwrap();
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            false
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_made_where_it_is_cheaper_than_the_look_ups_of_all_who_ask() {
        for (case, balancers, askers, lookups, expected) in [
            ("one page for one who asks", 50, 1, 1, true),
            ("two pages for one who asks twice", 100, 1, 2, true),
            ("two pages for one who asks once", 100, 1, 1, false),
            ("twenty pages for ten who ask twice", 1_000, 10, 2, true),
            ("twenty pages for two", 1_000, 2, 2, false),
        ] {
            let cloud = Cloud::with(balancers);
            cloud.shared.all(|| cloud.read()).await.unwrap();
            let mut answers = Vec::new();
            let asked = futures_of(askers, || cloud.ask(lookups));
            for answer in asked.await {
                answers.push(answer);
            }
            let last = answers.last().copied();
            assert_eq!(last, Some(expected), "{case}: {answers:?}");
            // No caller is counted for ever.
            assert_eq!(cloud.shared.wanted.load(Ordering::Relaxed), 0, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_ask_at_once_share_two_lists() {
        let cloud = Cloud::with(10);
        let answers = futures_of(10, || cloud.ask(2)).await;
        assert!(answers.iter().all(|shared| *shared));
        assert!(cloud.lists.load(Ordering::Relaxed) <= 2);
    }

    /// All of them at once.
    async fn futures_of<F: Future<Output = bool>>(count: usize, make: impl Fn() -> F) -> Vec<bool> {
        let mut running: Vec<_> = (0..count).map(|_| (Box::pin(make()), None)).collect();
        std::future::poll_fn(|cx| {
            for (future, answer) in &mut running {
                if answer.is_none()
                    && let std::task::Poll::Ready(ready) = future.as_mut().poll(cx)
                {
                    *answer = Some(ready);
                }
            }
            if running.iter().all(|(_, answer)| answer.is_some()) {
                return std::task::Poll::Ready(());
            }
            std::task::Poll::Pending
        })
        .await;
        running
            .into_iter()
            .filter_map(|(_, answer)| answer)
            .collect()
    }
}
