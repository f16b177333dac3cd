//! The query of a list.

use std::cmp::Ordering;

use jiff::Timestamp;
use percent_encoding::percent_decode_str;

use super::super::refusal::Refusal;
use super::super::world::actions::Action;
use super::super::world::{Certificate, Labels, LoadBalancer, Network, Server};
use super::selector::Selector;

const DEFAULT_PER_PAGE: u64 = 25;
const MOST_PER_PAGE: u64 = 50;

/// What a list is asked for.
#[derive(Debug)]
pub(super) struct ListQuery {
    pub(super) page: u64,
    pub(super) per_page: u64,
    pub(super) ids: Vec<u64>,
    name: Option<String>,
    selector: Selector,
    statuses: Vec<String>,
    types: Vec<String>,
    sort: Vec<(SortKey, bool)>,
}

#[derive(Debug, Clone, Copy)]
enum SortKey {
    Id,
    Name,
    Created,
    Status,
}

/// Something that stands in a list.
pub(in super::super) trait Listed {
    fn id(&self) -> u64;
    fn name(&self) -> &str;
    fn created(&self) -> Timestamp;
    fn labels(&self) -> Option<&Labels>;
    fn status(&self) -> &'static str {
        ""
    }
    fn kind(&self) -> &'static str {
        ""
    }
}

/// The page that a query asks for, whatever else it says.
pub(in super::super) fn page_of(query: &str) -> u64 {
    ListQuery::parse(query).map_or(1, |query| query.page)
}

impl ListQuery {
    /// Reads a query. What is not known is left alone, as the API does.
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let mut query = Self {
            page: 1,
            per_page: DEFAULT_PER_PAGE,
            ids: Vec::new(),
            name: None,
            selector: Selector::default(),
            statuses: Vec::new(),
            types: Vec::new(),
            sort: Vec::new(),
        };
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let spaced = value.replace('+', " ");
            let value = percent_decode_str(&spaced).decode_utf8_lossy().into_owned();
            match key {
                "page" => query.page = positive(key, &value)?,
                "per_page" => query.per_page = positive(key, &value)?.min(MOST_PER_PAGE),
                "id" => query.ids.push(positive(key, &value)?),
                "name" => query.name = Some(value),
                "label_selector" => {
                    let parsed = Selector::parse(&value);
                    query.selector = parsed.map_err(|why| Refusal::invalid(key, why))?;
                }
                "status" => query.statuses.push(value),
                "type" => query.types.push(value),
                "sort" => query.sort.push(sort(&value)?),
                _ => {}
            }
        }
        Ok(query)
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn fits(&self, thing: &impl Listed) -> bool {
        let among = |wanted: &[String], have: &str| {
            wanted.is_empty() || wanted.iter().any(|wanted| wanted == have)
        };
        self.name.as_deref().is_none_or(|name| name == thing.name())
            && among(&self.statuses, thing.status())
            && among(&self.types, thing.kind())
            && thing
                .labels()
                .is_none_or(|labels| self.selector.fits(labels))
    }

    /// By the first key that tells them apart, and else by ID.
    pub(super) fn compare(&self, a: &impl Listed, b: &impl Listed) -> Ordering {
        let by = |(key, descending): &(SortKey, bool)| {
            let order = match key {
                SortKey::Id => a.id().cmp(&b.id()),
                SortKey::Name => a.name().cmp(b.name()),
                SortKey::Created => a.created().cmp(&b.created()),
                SortKey::Status => a.status().cmp(b.status()),
            };
            if *descending { order.reverse() } else { order }
        };
        let decided = self.sort.iter().map(by).find(|order| order.is_ne());
        decided.unwrap_or_else(|| a.id().cmp(&b.id()))
    }
}

fn positive(key: &str, value: &str) -> Result<u64, Refusal> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Refusal::invalid(key, format!("{value:?} is not a positive number")))
}

fn sort(value: &str) -> Result<(SortKey, bool), Refusal> {
    let (key, direction) = value.split_once(':').unwrap_or((value, "asc"));
    let key = match key {
        "id" => SortKey::Id,
        "name" | "command" => SortKey::Name,
        "created" | "started" => SortKey::Created,
        "status" | "progress" => SortKey::Status,
        _ => return Err(Refusal::invalid("sort", format!("cannot sort by {key:?}"))),
    };
    match direction {
        "asc" => Ok((key, false)),
        "desc" => Ok((key, true)),
        _ => Err(Refusal::invalid(
            "sort",
            format!("{direction:?} is neither asc nor desc"),
        )),
    }
}

macro_rules! listed {
    ($($thing:ty { $($own:tt)* })+) => {
        $(impl Listed for $thing {
            fn id(&self) -> u64 {
                self.id
            }
            fn name(&self) -> &str {
                &self.name
            }
            fn created(&self) -> Timestamp {
                self.created
            }
            fn labels(&self) -> Option<&Labels> {
                Some(&self.labels)
            }
            $($own)*
        })+
    };
}

listed! {
    LoadBalancer {}
    Network {}
    Server {
        fn status(&self) -> &'static str {
            self.status.as_str()
        }
    }
    Certificate {
        fn kind(&self) -> &'static str {
            if self.managed { "managed" } else { "uploaded" }
        }
    }
}

impl Listed for Action {
    fn id(&self) -> u64 {
        self.id
    }
    fn name(&self) -> &str {
        self.command
    }
    fn created(&self) -> Timestamp {
        self.started
    }
    fn labels(&self) -> Option<&Labels> {
        None
    }
    fn status(&self) -> &'static str {
        self.status()
    }
}
