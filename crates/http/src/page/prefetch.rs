//! Fetches numbered pages concurrently.

use std::collections::VecDeque;
use std::future::Future;

use cloudkeel_api::CloudError;
use futures::StreamExt as _;
use futures::stream::FuturesOrdered;

use super::{Next, Page};
use crate::response::Response;

/// Enough to hide the latency; few enough to be no burst to the cloud.
const MAX_CONCURRENT_PAGES: usize = 4;

/// Returns pages in their order, and fetches the next ones meanwhile.
pub(super) struct PagePrefetch<F, Fetching: Future> {
    start: F,
    /// The last page, by the total that the first one reported.
    last: u64,
    in_flight: FuturesOrdered<Fetching>,
    numbers: VecDeque<u64>,
}

impl<F, Fetching> PagePrefetch<F, Fetching>
where
    F: Fn(Next) -> Fetching,
    Fetching: Future<Output = Result<Response, CloudError>>,
{
    pub(super) fn new(start: F) -> Self {
        Self {
            start,
            last: 0,
            in_flight: FuturesOrdered::new(),
            numbers: VecDeque::new(),
        }
    }

    /// Computes how many pages there are, if the first one reports a total.
    pub(super) fn expect<T>(&mut self, first: &Page<T>) {
        let on_each = u64::try_from(first.items.len()).unwrap_or(u64::MAX);
        if let (Next::Page(second), Some(total), 1..) = (&first.next, first.total, on_each) {
            let others = total.saturating_sub(on_each).div_ceil(on_each);
            self.last = second.saturating_sub(1).saturating_add(others);
        }
    }

    /// The requested page. Fetched pages that are not needed after all are dropped.
    pub(super) async fn fetch(&mut self, wanted: Next) -> Result<Response, CloudError> {
        let Next::Page(number) = wanted else {
            return (self.start)(wanted).await;
        };
        if self.numbers.pop_front() != Some(number) {
            self.numbers.clear();
            self.in_flight = FuturesOrdered::new();
            self.in_flight.push_back((self.start)(wanted.clone()));
        }
        let mut after = self.numbers.back().copied().unwrap_or(number);
        while self.in_flight.len() < MAX_CONCURRENT_PAGES && after < self.last {
            after += 1;
            self.in_flight.push_back((self.start)(Next::Page(after)));
            self.numbers.push_back(after);
        }
        match self.in_flight.next().await {
            Some(response) => response,
            None => (self.start)(wanted).await,
        }
    }
}
