//! One read of a cloud for all callers that need it at about the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use cloudkeel_api::CloudError;

/// A read of a cloud, such as a list, that is never under way twice at once.
///
/// A caller never gets the result of a read that began before it asked: one that comes while a read is under
/// way waits for the next, and shares that with all other callers that wait. Failures are shared in the same
/// way. If the caller that reads is dropped, the next one reads.
#[derive(Debug)]
pub struct SharedRead<T> {
    reading: AsyncMutex<()>,
    last: Mutex<Last<T>>,
}

#[derive(Debug)]
struct Last<T> {
    /// How many reads have begun.
    begun: u64,
    good: Option<Good<T>>,
    failure: Option<(u64, CloudError)>,
}

#[derive(Debug)]
struct Good<T> {
    number: u64,
    began: Instant,
    value: Arc<T>,
}

impl<T> Default for SharedRead<T> {
    fn default() -> Self {
        Self {
            reading: AsyncMutex::default(),
            last: Mutex::new(Last {
                begun: 0,
                good: None,
                failure: None,
            }),
        }
    }
}

impl<T> SharedRead<T> {
    /// What is read by a read that begins after this question.
    pub async fn fresh<R>(&self, read: impl FnOnce() -> R + Send) -> Result<Arc<T>, CloudError>
    where
        R: Future<Output = Result<T, CloudError>> + Send,
    {
        self.no_older_than(Duration::ZERO, read).await
    }

    /// What was read by a read that began less than `age` ago, or begins after this question.
    pub async fn no_older_than<R>(
        &self,
        age: Duration,
        read: impl FnOnce() -> R + Send,
    ) -> Result<Arc<T>, CloudError>
    where
        R: Future<Output = Result<T, CloudError>> + Send,
    {
        // Reads are counted, because two of them may begin at the same moment.
        let asked = self.lock().begun;
        if let Some(known) = self.lock().known(asked, age) {
            return known;
        }
        let _reading = self.reading.lock().await;
        if let Some(known) = self.lock().known(asked, age) {
            return known;
        }
        let began = Instant::now();
        let number = {
            let mut last = self.lock();
            last.begun += 1;
            last.begun
        };
        let answer = read().await;
        let mut last = self.lock();
        match answer {
            Ok(value) => {
                let value = Arc::new(value);
                last.good = Some(Good {
                    number,
                    began,
                    value: Arc::clone(&value),
                });
                Ok(value)
            }
            Err(error) => {
                last.failure = Some((number, error.clone_without_source()));
                Err(error)
            }
        }
    }

    /// The last good answer, however old.
    pub fn latest(&self) -> Option<Arc<T>> {
        let last = self.lock();
        last.good.as_ref().map(|good| Arc::clone(&good.value))
    }

    fn lock(&self) -> MutexGuard<'_, Last<T>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Last<T> {
    fn known(&self, asked: u64, age: Duration) -> Option<Result<Arc<T>, CloudError>> {
        if let Some(good) = &self.good
            && (good.number > asked || good.began.elapsed() < age)
        {
            return Some(Ok(Arc::clone(&good.value)));
        }
        let failure = self.failure.as_ref();
        let failure = failure.filter(|(number, _)| *number > asked);
        failure.map(|(_, error)| Err(error.clone_without_source()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use cloudkeel_api::ErrorKind;

    const SECOND: Duration = Duration::from_secs(1);

    /// A cloud that takes a second for an answer, which is the number of the question.
    #[derive(Default)]
    struct Cloud {
        asked: AtomicUsize,
        read: SharedRead<usize>,
        is_down: bool,
    }

    impl Cloud {
        async fn ask(&self) -> Result<usize, CloudError> {
            let answer = self.read.fresh(|| async {
                let number = self.asked.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(SECOND).await;
                if self.is_down {
                    return Err(CloudError::new("list", ErrorKind::Unavailable, "down"));
                }
                Ok(number)
            });
            answer.await.map(|number| *number)
        }

        async fn ask_later(&self, millis: u64) -> Result<usize, CloudError> {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            self.ask().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_come_during_a_read_share_the_next() {
        let cloud = Cloud::default();
        let answers = tokio::join!(
            cloud.ask(),
            cloud.ask_later(100),
            cloud.ask_later(200),
            cloud.ask_later(2_500),
        );
        let (first, second, third, last) = answers;
        assert_eq!(first.unwrap(), 0);
        assert_eq!((second.unwrap(), third.unwrap()), (1, 1));
        assert_eq!(last.unwrap(), 2, "a read that is over is not fresh");
    }

    #[tokio::test(start_paused = true)]
    async fn one_after_the_other_every_caller_reads_also_at_the_same_moment() {
        let (reads, read) = (AtomicUsize::new(0), SharedRead::default());
        for number in 0..3 {
            let next = || async { Ok(reads.fetch_add(1, Ordering::Relaxed)) };
            assert_eq!(*read.fresh(next).await.unwrap(), number);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_shared_too() {
        let cloud = Cloud {
            is_down: true,
            ..Cloud::default()
        };
        let (first, second, third) =
            tokio::join!(cloud.ask(), cloud.ask_later(100), cloud.ask_later(200));
        for answer in [first, second, third] {
            assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unavailable);
        }
        assert_eq!(cloud.asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_dropped_hands_over() {
        let cloud = Cloud::default();
        let dropped = tokio::time::timeout(SECOND / 2, cloud.ask());
        let (dropped, other) = tokio::join!(dropped, cloud.ask_later(100));
        assert!(dropped.is_err());
        assert_eq!(other.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_young_enough_is_not_read_again() {
        let cloud = Cloud::default();
        cloud.ask().await.unwrap();
        let read = || async { Err(CloudError::invalid("list", "asked once more")) };
        let known = cloud.read.no_older_than(SECOND * 2, read).await;
        assert_eq!(*known.unwrap(), 0);
        let too_old = cloud.read.no_older_than(SECOND, read).await;
        assert!(too_old.is_err());
        assert_eq!(cloud.read.latest().as_deref(), Some(&0));
    }
}
