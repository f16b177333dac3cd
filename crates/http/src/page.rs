//! Paged lists: a list is complete, or an error.

mod prefetch;

use std::collections::HashSet;
use std::hash::Hash;

use cloudkeel_api::{CloudError, ErrorKind};

use self::prefetch::PagePrefetch;

use crate::client::Client;
use crate::request::Request;
use crate::response::Response;

/// One page as a provider parsed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next one is.
    pub next: Next,
    /// How many items the cloud says there are on all pages.
    pub total: Option<u64>,
}

/// Where the next page is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Next {
    /// This was the last one.
    End,
    /// At this page number.
    Page(u64),
    /// Behind this link.
    Link(String),
    /// After this marker.
    Marker(String),
}

impl Next {
    /// At this page number, if there is one.
    pub fn page(number: Option<u64>) -> Self {
        number
            .filter(|number| *number > 0)
            .map_or(Self::End, Self::Page)
    }

    /// Behind this link, if there is one.
    pub fn link(link: Option<String>) -> Self {
        link.filter(|link| !link.is_empty())
            .map_or(Self::End, Self::Link)
    }

    /// After this marker, if there is one.
    pub fn marker(marker: Option<String>) -> Self {
        marker
            .filter(|marker| !marker.is_empty())
            .map_or(Self::End, Self::Marker)
    }
}

/// All items of a list. It is always complete: missing items are an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// Every item once, in the cloud's order.
    pub items: Vec<T>,
    /// How many pages it took.
    pub pages: u32,
    /// Why it is known to be complete.
    pub complete: Completeness,
}

/// Why a list is considered complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// The cloud reported how many items there are, and that many came.
    Counted,
    /// The cloud reports no number; all pages were read to the last.
    LastPageReached,
}

/// Reads a list page by page.
pub struct Pager<'a> {
    client: &'a Client,
    first: Request,
    page_param: &'static str,
    after_marker: Box<AfterMarker<'a>>,
    max_pages: u32,
    restarts: u32,
}

type AfterMarker<'a> = dyn Fn(Request, &str) -> Request + Send + Sync + 'a;

impl<'a> Pager<'a> {
    pub(crate) fn new(client: &'a Client, first: Request) -> Self {
        Self {
            client,
            first,
            page_param: "page",
            after_marker: Box::new(|first, marker| first.set_query("marker", marker)),
            max_pages: 1000,
            restarts: 2,
        }
    }

    /// The query parameter for page numbers, if it is not `page`.
    #[must_use]
    pub const fn page_param(mut self, name: &'static str) -> Self {
        self.page_param = name;
        self
    }

    /// The query parameter for markers, if it is not `marker`.
    #[must_use]
    pub fn marker_param(self, name: &'static str) -> Self {
        self.after_marker(move |first, marker| first.set_query(name, marker))
    }

    /// Builds the request for what follows a marker, where that is no query parameter: a pair of a form, a field of
    /// a body, or another request. It gets the first request.
    #[must_use]
    pub fn after_marker(
        mut self,
        request: impl Fn(Request, &str) -> Request + Send + Sync + 'a,
    ) -> Self {
        self.after_marker = Box::new(request);
        self
    }

    /// The number of pages at which something must be wrong.
    #[must_use]
    pub const fn max_pages(mut self, pages: u32) -> Self {
        self.max_pages = pages;
        self
    }

    /// Reads all pages. `key` identifies items, since they move between pages when others are added or removed
    /// meanwhile.
    ///
    /// A failed page fails the list. Fewer items than reported, a next page that was read already and too many pages
    /// are [`ErrorKind::Incomplete`]. If the number of items falls while pages are read, one may have been missed
    /// between two pages: the list starts again, and is incomplete if that keeps happening, or if nothing is left at
    /// all. An empty scope is accepted only if it was empty from the first page on.
    pub async fn collect<T, K: Hash + Eq>(
        &self,
        key: impl Fn(&T) -> K,
        read: impl Fn(&Response) -> Result<Page<T>, CloudError>,
    ) -> Result<Listing<T>, CloudError> {
        let mut shrank = false;
        for _ in 0..=self.restarts {
            match self.pass(&key, &read).await? {
                Pass::Whole(listing) if shrank && listing.items.is_empty() => {
                    return Err(self.incomplete("all items went away while its pages were read"));
                }
                Pass::Whole(listing) => return Ok(listing),
                Pass::Shrank => shrank = true,
            }
            tracing::debug!(
                operation = self.first.operation(),
                "items disappeared while listing, listing again"
            );
        }
        Err(self.incomplete("items kept going away while its pages were read"))
    }

    /// One pass over all pages.
    async fn pass<T, K: Hash + Eq>(
        &self,
        key: &impl Fn(&T) -> K,
        read: &impl Fn(&Response) -> Result<Page<T>, CloudError>,
    ) -> Result<Pass<T>, CloudError> {
        let mut items = Vec::new();
        let mut keys = HashSet::new();
        let mut visited = self.start();
        let mut ahead = PagePrefetch::new(|next| {
            let request = self.request_for(next);
            async move { self.client.send_ref(&request).await }
        });
        let mut response = self.client.send_ref(&self.first).await?;
        let mut total = None;
        for pages in 1..=self.max_pages {
            let page = read(&response)?;
            if pages == 1 {
                ahead.expect(&page);
            }
            items.extend(page.items.into_iter().filter(|item| keys.insert(key(item))));
            let fell = page
                .total
                .zip(total)
                .is_some_and(|(now, before)| now < before);
            if fell {
                return Ok(Pass::Shrank);
            }
            total = page.total.or(total);
            if page.next == Next::End {
                let complete = self.verify(items.len(), total)?;
                return Ok(Pass::Whole(Listing {
                    items,
                    pages,
                    complete,
                }));
            }
            if !visited.insert(page.next.clone()) {
                return Err(self.incomplete(&format!("page {pages} links back to an earlier page")));
            }
            if pages < self.max_pages {
                response = ahead.fetch(page.next).await?;
            }
        }
        Err(self.incomplete(&format!("it has more than {} pages", self.max_pages)))
    }

    fn start(&self) -> HashSet<Next> {
        let mut visited = HashSet::new();
        let first = self.first.query_value(self.page_param);
        if let Some(number) = first.and_then(|number| number.parse().ok()) {
            visited.insert(Next::Page(number));
        }
        visited
    }

    fn request_for(&self, next: Next) -> Request {
        let first = self.first.clone();
        match next {
            Next::End => first,
            Next::Page(number) => first.set_query(self.page_param, number),
            Next::Marker(marker) => (self.after_marker)(first, &marker),
            Next::Link(link) => first.with_link(link),
        }
    }

    fn verify(&self, found: usize, total: Option<u64>) -> Result<Completeness, CloudError> {
        let Some(total) = total else {
            return Ok(Completeness::LastPageReached);
        };
        let found = u64::try_from(found).unwrap_or(u64::MAX);
        if found < total {
            return Err(self.incomplete(&format!("{found} items came, {total} were announced")));
        }
        Ok(Completeness::Counted)
    }

    fn incomplete(&self, why: &str) -> CloudError {
        CloudError::new(
            self.first.operation().to_owned(),
            ErrorKind::Incomplete,
            format!("the listing is not complete: {why}"),
        )
    }
}

/// The outcome of one pass over all pages.
enum Pass<T> {
    Whole(Listing<T>),
    /// The number of items fell, so that one may have been missed.
    Shrank,
}

#[cfg(test)]
mod tests;
