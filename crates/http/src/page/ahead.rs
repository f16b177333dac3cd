//! Pages with numbers need not wait for each other.

use std::collections::VecDeque;
use std::future::Future;

use cloudkeel_api::CloudError;
use futures::StreamExt as _;
use futures::stream::FuturesOrdered;

use super::{Next, Page};
use crate::response::Response;

/// Enough to hide how long an answer takes; few enough to be no burst to the cloud.
const PAGES_AT_ONCE: usize = 4;

/// Fetches pages in their order, and those that will be wanted next meanwhile.
pub(super) struct ReadAhead<F, Fetching: Future> {
    start: F,
    /// The last page there should be, by what the first one announced.
    last: u64,
    under_way: FuturesOrdered<Fetching>,
    numbers: VecDeque<u64>,
}

impl<F, Fetching> ReadAhead<F, Fetching>
where
    F: Fn(Next) -> Fetching,
    Fetching: Future<Output = Result<Response, CloudError>>,
{
    pub(super) fn new(start: F) -> Self {
        Self {
            start,
            last: 0,
            under_way: FuturesOrdered::new(),
            numbers: VecDeque::new(),
        }
    }

    /// Works out how many pages there are, if the first one tells.
    pub(super) fn expect<T>(&mut self, first: &Page<T>) {
        let on_each = u64::try_from(first.items.len()).unwrap_or(u64::MAX);
        if let (Next::Page(second), Some(total), 1..) = (&first.next, first.total, on_each) {
            let others = total.saturating_sub(on_each).div_ceil(on_each);
            self.last = second.saturating_sub(1).saturating_add(others);
        }
    }

    /// The page that is wanted now. What was begun and is not wanted after all is given up.
    pub(super) async fn fetch(&mut self, wanted: Next) -> Result<Response, CloudError> {
        let Next::Page(number) = wanted else {
            return (self.start)(wanted).await;
        };
        if self.numbers.pop_front() != Some(number) {
            self.numbers.clear();
            self.under_way = FuturesOrdered::new();
            self.under_way.push_back((self.start)(wanted.clone()));
        }
        let mut after = self.numbers.back().copied().unwrap_or(number);
        while self.under_way.len() < PAGES_AT_ONCE && after < self.last {
            after += 1;
            self.under_way.push_back((self.start)(Next::Page(after)));
            self.numbers.push_back(after);
        }
        match self.under_way.next().await {
            Some(response) => response,
            None => (self.start)(wanted).await,
        }
    }
}
