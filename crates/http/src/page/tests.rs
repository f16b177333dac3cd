use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::testing::{Reply, Script};
use crate::{RetryPolicy, Transport, TransportError, TransportErrorKind};

#[derive(Deserialize)]
struct Body {
    items: Vec<u64>,
    next_page: Option<u64>,
    next_link: Option<String>,
    marker: Option<String>,
    total: Option<u64>,
}

fn read(response: &Response) -> Result<Page<u64>, CloudError> {
    let body: Body = response.json()?;
    let next = match (body.next_page, body.next_link, body.marker) {
        (Some(page), ..) => Next::page(Some(page)),
        (_, Some(link), _) => Next::link(Some(link)),
        (_, _, marker) => Next::marker(marker),
    };
    Ok(Page {
        items: body.items,
        next,
        total: body.total,
    })
}

fn client(script: &Arc<Script>) -> Client {
    Client::builder("https://api.example.com/v1")
        .transport(Arc::clone(script) as _)
        .retry(RetryPolicy::never())
        .build()
        .unwrap()
}

async fn list(replies: Vec<Reply>) -> (Arc<Script>, Result<Listing<u64>, CloudError>) {
    let script = Script::new(replies);
    let client = client(&script);
    let first = Request::get("/servers")
        .query("page", 1)
        .query("per_page", 2);
    // Spawned, as providers' futures have to be `Send`.
    let listing = tokio::spawn(async move {
        let pages = client.pages(first).max_pages(5);
        pages.collect(|item| *item, read).await
    });
    (script, listing.await.unwrap())
}

fn page(body: &Value) -> Reply {
    Reply::json(200, body)
}

#[tokio::test]
async fn pages_are_followed_in_every_style() {
    let base = "https://api.example.com/v1/servers";
    for (case, first, lines) in [
        (
            "numbers",
            json!({"items": [1, 2], "next_page": 2}),
            [
                format!("GET {base}?page=1&per_page=2"),
                format!("GET {base}?per_page=2&page=2"),
            ],
        ),
        (
            "links",
            json!({"items": [1, 2], "next_link": "https://api.example.com/v1/other?marker=2"}),
            [
                format!("GET {base}?page=1&per_page=2"),
                "GET https://api.example.com/v1/other?marker=2".to_owned(),
            ],
        ),
        (
            "markers",
            json!({"items": [1, 2], "marker": "a b"}),
            [
                format!("GET {base}?page=1&per_page=2"),
                format!("GET {base}?page=1&per_page=2&marker=a%20b"),
            ],
        ),
    ] {
        let (script, listing) = list(vec![page(&first), page(&json!({"items": [3]}))]).await;
        let listing = listing.unwrap();
        assert_eq!(listing.items, [1, 2, 3], "{case}");
        assert_eq!(listing.pages, 2, "{case}");
        assert_eq!(listing.complete, Completeness::LastPageReached, "{case}");
        assert_eq!(script.seen_lines(), lines, "{case}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table")]
async fn a_listing_is_checked_against_the_announced_number() {
    for (case, pages, expected) in [
        (
            "as many as announced",
            vec![
                json!({"items": [1, 2], "next_page": 2, "total": 3}),
                json!({"items": [3], "total": 3}),
            ],
            Ok(vec![1, 2, 3]),
        ),
        (
            "one came meanwhile and shifted another to the next page",
            vec![
                json!({"items": [1, 2], "next_page": 2, "total": 3}),
                json!({"items": [2, 3], "total": 3}),
            ],
            Ok(vec![1, 2, 3]),
        ),
        (
            "more than announced",
            vec![
                json!({"items": [1, 2], "next_page": 2, "total": 2}),
                json!({"items": [3], "total": 3}),
            ],
            Ok(vec![1, 2, 3]),
        ),
        (
            "fewer than announced",
            vec![json!({"items": [1], "total": 2})],
            Err("1 items came, 2 were announced"),
        ),
        (
            "a duplicate does not make up for a missing one",
            vec![
                json!({"items": [1, 2], "next_page": 2, "total": 3}),
                json!({"items": [2], "total": 3}),
            ],
            Err("2 items came, 3 were announced"),
        ),
        (
            "the number only on the first page",
            vec![
                json!({"items": [1, 2], "next_page": 2, "total": 4}),
                json!({"items": [3]}),
            ],
            Err("3 items came, 4 were announced"),
        ),
        (
            "none, and none announced",
            vec![json!({"items": [], "total": 0})],
            Ok(vec![]),
        ),
        (
            "none, but some announced",
            vec![json!({"items": [], "total": 7})],
            Err("0 items came, 7 were announced"),
        ),
        (
            "the same page again",
            vec![json!({"items": [1, 2], "next_page": 1})],
            Err("links back to an earlier page"),
        ),
        (
            "a circle of two",
            vec![
                json!({"items": [1], "next_link": "/v1/a"}),
                json!({"items": [2], "next_link": "/v1/b"}),
                json!({"items": [3], "next_link": "/v1/a"}),
            ],
            Err("links back to an earlier page"),
        ),
        (
            "no end",
            (2..7)
                .map(|next| json!({"items": [next], "next_page": next}))
                .collect(),
            Err("more than 5 pages"),
        ),
    ] {
        let (_, listing) = list(pages.iter().map(page).collect()).await;
        match (listing, expected) {
            (Ok(listing), Ok(items)) => assert_eq!(listing.items, items, "{case}"),
            (Err(error), Err(needle)) => {
                assert_eq!(error.kind(), ErrorKind::Incomplete, "{case}");
                assert!(error.to_string().contains(needle), "{case}: {error}");
            }
            (got, expected) => panic!("{case}: {got:?} instead of {expected:?}"),
        }
    }
}

#[tokio::test]
async fn a_listing_that_shrinks_between_numbered_pages_begins_again() {
    // 1 went away after the first page: 3 moved to page one, and page two begins with 4.
    let (script, listing) = list(vec![
        page(&json!({"items": [1, 2], "next_page": 2, "total": 4})),
        page(&json!({"items": [4], "total": 3})),
        page(&json!({"items": [2, 3], "next_page": 2, "total": 3})),
        page(&json!({"items": [4], "total": 3})),
    ])
    .await;
    let listing = listing.unwrap();
    assert_eq!(listing.items, [2, 3, 4]);
    assert_eq!(listing.complete, Completeness::Counted);
    assert_eq!(script.left(), 0);
}

#[tokio::test]
async fn a_listing_that_keeps_shrinking_is_incomplete() {
    let shrinking = (0..3).flat_map(|round| {
        [
            page(&json!({"items": [1, 2], "next_page": 2, "total": 10 - round})),
            page(&json!({"items": [4], "total": 9 - round})),
        ]
    });
    let (script, listing) = list(shrinking.collect()).await;
    assert_eq!(listing.unwrap_err().kind(), ErrorKind::Incomplete);
    assert_eq!(script.left(), 0);
}

#[tokio::test]
async fn a_list_that_turns_empty_while_it_is_read_is_an_error() {
    for (case, next) in [
        ("numbers", json!({"next_page": 2})),
        (
            "links",
            json!({"next_link": "https://api.example.com/v1/other?page=2"}),
        ),
        ("markers", json!({"marker": "2"})),
    ] {
        let mut first = json!({"items": [1, 2], "total": 4});
        for (key, value) in next.as_object().unwrap() {
            first[key] = value.clone();
        }
        let nothing = json!({"items": [], "total": 0});
        let (_, listing) = list(vec![page(&first), page(&nothing), page(&nothing)]).await;
        let error = listing.expect_err(case);
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{case}");
        let text = error.to_string();
        assert!(text.contains("all items went away"), "{case}: {text}");
    }
}

#[tokio::test]
async fn a_list_with_an_announced_total_that_is_empty_is_an_error() {
    let announced = json!({"items": [], "next_page": 2, "total": 4});
    let nothing = json!({"items": [], "total": 0});
    let (_, listing) = list(vec![page(&announced), page(&nothing), page(&nothing)]).await;
    assert_eq!(listing.unwrap_err().kind(), ErrorKind::Incomplete);
}

#[tokio::test]
async fn a_failed_page_fails_the_listing() {
    let first = || page(&json!({"items": [1, 2], "next_page": 2}));
    for (case, second, kind) in [
        ("refused", Reply::status(500), ErrorKind::Unavailable),
        ("gone", Reply::status(404), ErrorKind::NotFound),
        (
            "cut off",
            Reply::text(200, r#"{"items":[3,"#),
            ErrorKind::Malformed,
        ),
        (
            "broken",
            Reply::broken(TransportErrorKind::Broken),
            ErrorKind::Unavailable,
        ),
    ] {
        let (_, listing) = list(vec![first(), second]).await;
        assert_eq!(listing.unwrap_err().kind(), kind, "{case}");
    }
}

#[tokio::test]
async fn a_link_to_a_strange_host_is_not_followed() {
    let (script, listing) = list(vec![page(
        &json!({"items": [1], "next_link": "https://evil.example.com/v1/servers?page=2"}),
    )])
    .await;
    assert_eq!(listing.unwrap_err().kind(), ErrorKind::Malformed);
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn numbered_pages_do_not_wait_for_each_other() {
    let cloud = Arc::new(Changing::new(13, [], []));
    let listing = cloud.list().await.unwrap();
    assert_eq!(listing.items, (0..13).collect::<Vec<_>>());
    assert_eq!(listing.pages, 5);
    // Each page once, and the last four at the same time.
    assert_eq!(cloud.asked(), [1, 2, 3, 4, 5]);
    assert_eq!(tokio::time::Instant::now() - cloud.began, LATENCY * 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_pages_are_asked_for_than_were_announced() {
    for (size, pages) in [(0, 1), (1, 1), (3, 1), (4, 2), (9, 3), (10, 4), (31, 11)] {
        let cloud = Arc::new(Changing::new(size, [], []));
        let listing = cloud.list().await.unwrap();
        assert_eq!(listing.items.len(), usize::try_from(size).unwrap());
        assert_eq!(cloud.asked(), (1..=pages).collect::<Vec<_>>(), "{size}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_that_come_while_others_are_read_are_read_too() {
    // After the first page, a seventh and an eighth item: a third page that was not announced.
    let at_the_end = [(Change::Comes, 6), (Change::Comes, 7)];
    let cloud = Arc::new(Changing::new(6, at_the_end, []));
    let listing = cloud.list().await.unwrap();
    assert_eq!(listing.items, [0, 1, 2, 3, 4, 5, 1006, 1007]);
    assert_eq!(cloud.asked(), [1, 2, 3]);
}

const LATENCY: Duration = Duration::from_millis(20);

/// A cloud whose items change after every page, and whose pages may fail.
struct Changing {
    began: tokio::time::Instant,
    asked: Mutex<Vec<usize>>,
    /// How long each answer takes in turn, in multiples of the latency; once, if nothing is said.
    delays: Mutex<VecDeque<u8>>,
    items: Mutex<Vec<u64>>,
    changes: Mutex<VecDeque<(Change, usize)>>,
    faults: Mutex<VecDeque<Option<u16>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Comes,
    Goes,
    Nothing,
}

impl Changing {
    fn new(
        size: u64,
        changes: impl Into<VecDeque<(Change, usize)>>,
        faults: impl Into<VecDeque<Option<u16>>>,
    ) -> Self {
        Self {
            began: tokio::time::Instant::now(),
            asked: Mutex::default(),
            delays: Mutex::default(),
            items: Mutex::new((0..size).collect()),
            changes: Mutex::new(changes.into()),
            faults: Mutex::new(faults.into()),
        }
    }

    async fn list(self: &Arc<Self>) -> Result<Listing<u64>, CloudError> {
        let client = Client::builder("https://api.example.com/v1")
            .transport(Arc::clone(self) as _)
            .retry(RetryPolicy::never())
            .build()
            .unwrap();
        let first = Request::get("/servers").query("page", 1);
        client.pages(first).collect(|item| *item, read).await
    }

    fn asked(&self) -> Vec<usize> {
        self.asked.lock().unwrap().clone()
    }

    fn answer(&self, page: usize) -> http::Response<Bytes> {
        let mut items = self.items.lock().unwrap();
        let shown: Vec<_> = items.iter().skip((page - 1) * 3).take(3).collect();
        let more = items.len() > page * 3;
        let body = json!({
            "items": shown,
            "next_page": more.then_some(page + 1),
            "total": items.len(),
        });
        match self.changes.lock().unwrap().pop_front() {
            Some((Change::Comes, at)) => {
                let (at, new) = (at % (items.len() + 1), 1000 + u64::try_from(at).unwrap());
                items.insert(at, new);
            }
            Some((Change::Goes, at)) if !items.is_empty() => {
                let at = at % items.len();
                items.remove(at);
            }
            _ => {}
        }
        let mut response = http::Response::new(Bytes::from(body.to_string()));
        if let Some(Some(status)) = self.faults.lock().unwrap().pop_front() {
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        }
        response
    }
}

#[async_trait]
impl Transport for Changing {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let query = request.uri().query().unwrap();
        let page = query.split('&').find_map(|pair| pair.strip_prefix("page="));
        let page = page.unwrap().parse().unwrap();
        self.asked.lock().unwrap().push(page);
        let delay = self.delays.lock().unwrap().pop_front().unwrap_or(1);
        tokio::time::sleep(LATENCY * u32::from(delay)).await;
        Ok(self.answer(page))
    }
}

proptest! {
    /// Whatever is added or removed between the pages, and in whatever order they are returned: an item that existed
    /// all the time is in the list, once, or the list is an error. (Only if as many are added as removed at the same
    /// moment can this not be detected.)
    #[test]
    fn a_short_list_is_never_called_complete(
        size in 0u64..20,
        change in prop::sample::select(vec![Change::Comes, Change::Goes, Change::Nothing]),
        places in prop::collection::vec(prop::option::of(any::<u16>()), 0..12),
        faults in prop::collection::vec(prop::option::weighted(0.05, 400u16..600), 0..12),
        delays in prop::collection::vec(0u8..6, 0..30),
    ) {
        let changes = places.iter().map(|place| match place {
            Some(place) => (change, usize::from(*place)),
            None => (Change::Nothing, 0),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let _inside = runtime.enter();
        let cloud = Changing::new(size, changes.collect::<VecDeque<_>>(), faults);
        *cloud.delays.lock().unwrap() = delays.into();
        let cloud = Arc::new(cloud);
        let listing = runtime.block_on(cloud.list());
        if let Ok(listing) = listing {
            let found: HashSet<_> = listing.items.iter().collect();
            prop_assert_eq!(found.len(), listing.items.len());
            let stayed = cloud.items.lock().unwrap();
            for item in stayed.iter().filter(|item| **item < 1000) {
                prop_assert!(found.contains(item), "{item} slipped through: {:?}", listing.items);
            }
        }
    }
}
