//! Lists: filters, label selectors, order and pages, stated as data for each API.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;

use super::params::{ParamError, Params};
use super::selector::Selector;

/// Labels or tags of a resource.
pub type Labels = BTreeMap<String, String>;

/// Something that a list shows.
pub trait Listed {
    /// The value of a field by which a list is filtered or sorted; `None` if it has no such field.
    fn field(&self, name: &str) -> Option<Value>;

    /// Its labels, if it can have any.
    fn labels(&self) -> Option<&Labels> {
        None
    }
}

impl<T: Listed> Listed for &T {
    fn field(&self, name: &str) -> Option<Value> {
        T::field(self, name)
    }

    fn labels(&self) -> Option<&Labels> {
        T::labels(self)
    }
}

/// An entry of a catalogue, as the API shows it.
impl Listed for Value {
    fn field(&self, name: &str) -> Option<Value> {
        self.get(name).cloned()
    }
}

/// How the lists of an API are asked for.
#[derive(Debug, Clone, Copy)]
pub struct ListApi {
    /// Its pages.
    pub paging: Paging,
    /// Parameters that filter by a field. Several values of one parameter mean any of them.
    pub filters: &'static [Filter],
    /// The parameter that filters by labels.
    pub labels: LabelParam,
    /// The parameter that sorts, and the fields by which it can.
    pub sort: Option<(&'static str, &'static [&'static str])>,
    /// Whether a parameter that is none of these is an error.
    pub rejects_unknown: bool,
}

/// How an API cuts lists into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// Pages have numbers, counted from 1.
    Numbered {
        /// The parameter with the number of the page.
        page: &'static str,
        /// The parameter with the size of a page.
        per_page: &'static str,
        /// The size of a page by default.
        default: u64,
        /// The biggest page; more is cut down to it.
        max: u64,
        /// Whether a zero is an error, and not the smallest good number.
        rejects_zero: bool,
    },
    /// A page begins behind the item with this ID.
    Marker {
        /// The parameter with the ID.
        marker: &'static str,
        /// The parameter with the size of a page.
        limit: &'static str,
        /// The biggest page, which is also the default.
        max: u64,
    },
}

/// A parameter that filters by a field.
#[derive(Debug, Clone, Copy)]
pub struct Filter {
    param: &'static str,
    field: &'static str,
    kind: FilterKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterKind {
    Exact,
    Number,
    IgnoreCase,
}

impl Filter {
    /// By the field that has the name of the parameter.
    pub const fn exact(param: &'static str) -> Self {
        Self::by(param, param, FilterKind::Exact)
    }

    /// By another field.
    pub const fn on(param: &'static str, field: &'static str) -> Self {
        Self::by(param, field, FilterKind::Exact)
    }

    /// By a number; what is none is an error.
    pub const fn number(param: &'static str) -> Self {
        Self::by(param, param, FilterKind::Number)
    }

    /// Whatever the case of the letters.
    pub const fn ignore_case(param: &'static str) -> Self {
        Self::by(param, param, FilterKind::IgnoreCase)
    }

    const fn by(param: &'static str, field: &'static str, kind: FilterKind) -> Self {
        Self { param, field, kind }
    }

    fn matches(&self, wanted: &[String], item: &impl Listed) -> bool {
        let Some(have) = item.field(self.field) else {
            return false;
        };
        let have = text_of(&have);
        wanted.iter().any(|wanted| match self.kind {
            FilterKind::IgnoreCase => wanted.eq_ignore_ascii_case(&have),
            FilterKind::Exact | FilterKind::Number => *wanted == have,
        })
    }
}

/// The parameter that filters by labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelParam {
    /// There is none.
    None,
    /// A selector as Kubernetes writes it.
    Selector(&'static str),
    /// `key=value`, once for each label that must be there.
    Pair(&'static str),
}

/// What one call asks of a list.
#[derive(Debug, Clone)]
pub struct ListQuery {
    params: Params,
    paging: Paging,
    window: Window,
    filters: Vec<(Filter, Vec<String>)>,
    selector: Selector,
    sort: Vec<(&'static str, bool)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Window {
    Page(u64, u64),
    After(Option<String>, u64),
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: u64,
    /// Its number; 1 where pages have none.
    pub number: u64,
    /// How many a page holds.
    pub per_page: u64,
    /// The parameter that asks for the next page, and its value; `None` on the last page.
    pub next: Option<(&'static str, String)>,
}

impl<T> Page<T> {
    /// The number of the last page. An empty list has one page.
    pub fn last(&self) -> u64 {
        self.total.div_ceil(self.per_page.max(1)).max(1)
    }

    /// The same page with its items as the API shows them.
    pub fn map<U>(self, show: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(show).collect(),
            total: self.total,
            number: self.number,
            per_page: self.per_page,
            next: self.next,
        }
    }
}

impl ListApi {
    /// Reads what a call asks for.
    pub fn read(&self, params: Params) -> Result<ListQuery, ParamError> {
        let window = self.window(&params)?;
        let mut query = ListQuery {
            paging: self.paging,
            window,
            filters: Vec::new(),
            selector: Selector::default(),
            sort: Vec::new(),
            params: Params::default(),
        };
        for filter in self.filters {
            let wanted: Vec<String> = params.all(filter.param).map(str::to_owned).collect();
            if filter.kind == FilterKind::Number {
                for value in &wanted {
                    Params::parse("")
                        .with(filter.param, value)
                        .number(filter.param)?;
                }
            }
            if !wanted.is_empty() {
                query.filters.push((*filter, wanted));
            }
        }
        query.selector = self.selector(&params)?;
        if let Some((param, fields)) = self.sort {
            let keys = params
                .all(param)
                .map(|value| sort_key(param, fields, value));
            query.sort = keys.collect::<Result<_, _>>()?;
        }
        if self.rejects_unknown
            && let Some((param, _)) = params.iter().find(|(param, _)| !self.knows(param))
        {
            let message = "there is no such parameter";
            return Err(ParamError::new(param, message));
        }
        query.params = params;
        Ok(query)
    }

    fn window(&self, params: &Params) -> Result<Window, ParamError> {
        match self.paging {
            Paging::Numbered {
                page,
                per_page,
                default,
                max,
                rejects_zero,
            } => {
                let positive = |param: &str, default| match params.number(param)? {
                    Some(0) if rejects_zero => {
                        Err(ParamError::new(param, "must be a positive number"))
                    }
                    number => Ok(number.unwrap_or(default).max(1)),
                };
                let size = positive(per_page, default)?.min(max.max(1));
                Ok(Window::Page(positive(page, 1)?, size))
            }
            Paging::Marker { marker, limit, max } => {
                let after = params.get(marker).map(str::to_owned);
                let size = params.number(limit)?.unwrap_or(max).clamp(1, max.max(1));
                Ok(Window::After(after, size))
            }
        }
    }

    fn selector(&self, params: &Params) -> Result<Selector, ParamError> {
        match self.labels {
            LabelParam::None => Ok(Selector::default()),
            LabelParam::Selector(param) => {
                let text = params.get(param).unwrap_or_default();
                Selector::parse(text).map_err(|message| ParamError::new(param, message))
            }
            LabelParam::Pair(param) => {
                let pair = |text: &str| {
                    let pair = text.split_once('=');
                    let pair = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
                    pair.ok_or_else(|| {
                        ParamError::new(param, format!("{text:?}: expected `key=value`"))
                    })
                };
                let pairs: Labels = params.all(param).map(pair).collect::<Result<_, _>>()?;
                Ok(Selector::exactly(pairs))
            }
        }
    }

    fn knows(&self, param: &str) -> bool {
        let (first, second) = match self.paging {
            Paging::Numbered { page, per_page, .. } => (page, per_page),
            Paging::Marker { marker, limit, .. } => (marker, limit),
        };
        let label = match self.labels {
            LabelParam::None => None,
            LabelParam::Selector(name) | LabelParam::Pair(name) => Some(name),
        };
        let sort = self.sort.map(|(name, _)| name);
        let filters = self.filters.iter().map(|filter| filter.param);
        let mut known = [first, second].into_iter().chain(label).chain(sort);
        known.any(|known| known == param) || filters.into_iter().any(|known| known == param)
    }
}

/// `field`, `field:desc` or `-field`.
fn sort_key(
    param: &str,
    fields: &'static [&'static str],
    value: &str,
) -> Result<(&'static str, bool), ParamError> {
    let (name, direction) = match value.strip_prefix('-') {
        Some(name) => (name, "desc"),
        None => value.split_once(':').unwrap_or((value, "asc")),
    };
    let descending = match direction {
        "asc" => false,
        "desc" => true,
        other => {
            let message = format!("{other:?} is neither asc nor desc");
            return Err(ParamError::new(param, message));
        }
    };
    let known = fields.iter().find(|field| **field == name);
    let field = known.ok_or_else(|| ParamError::new(param, format!("cannot sort by {name:?}")))?;
    Ok((field, descending))
}

impl ListQuery {
    /// The values that a filter asks for; empty if it is not set.
    pub fn wanted(&self, param: &str) -> &[String] {
        let mut filters = self.filters.iter();
        let found = filters.find(|(filter, _)| filter.param == param);
        found.map_or(&[], |(_, wanted)| wanted)
    }

    /// Whether the filters let an item through.
    pub fn matches(&self, item: &impl Listed) -> bool {
        let mut filters = self.filters.iter();
        filters.all(|(filter, wanted)| filter.matches(wanted, item))
            && item
                .labels()
                .is_none_or(|labels| self.selector.matches(labels))
    }

    /// The page that was asked for. Items come in the order of their IDs, which is the order of the list if the
    /// call asks for no other.
    pub fn select<T: Listed>(&self, items: impl IntoIterator<Item = T>) -> Page<T> {
        let found = items.into_iter().filter(|item| self.matches(item));
        if self.sort.is_empty() {
            return self.page(found);
        }
        let mut found: Vec<T> = found.collect();
        // The sort is stable: what is equal stays in the order of IDs.
        found.sort_by(|a, b| self.compare(a, b));
        self.page(found.into_iter())
    }

    /// The page that was asked for, of items that are filtered and sorted already. Only those on it are kept.
    fn page<T: Listed>(&self, found: impl Iterator<Item = T>) -> Page<T> {
        let (mut items, mut total, mut more) = (Vec::new(), 0, false);
        let mut begun = !matches!(&self.window, Window::After(Some(_), _));
        for item in found {
            let (number, size) = match &self.window {
                Window::Page(page, size) => {
                    let first = (page - 1).saturating_mul(*size);
                    (total >= first, *size)
                }
                Window::After(_, size) => (begun, *size),
            };
            if let Window::After(Some(marker), _) = &self.window {
                begun = begun || id_of(&item) == *marker;
            }
            total += 1;
            let full = u64::try_from(items.len()).is_ok_and(|length| length >= size);
            match (number, full) {
                (true, false) => items.push(item),
                (true, true) => more = true,
                (false, _) => {}
            }
        }
        let (number, per_page) = match self.window {
            Window::Page(page, size) => (page, size),
            Window::After(_, size) => (1, size),
        };
        let next = match self.paging {
            _ if !more => None,
            Paging::Numbered { page, .. } => Some((page, (number + 1).to_string())),
            Paging::Marker { marker, .. } => items.last().map(|item| (marker, id_of(item))),
        };
        Page {
            items,
            total,
            number,
            per_page,
            next,
        }
    }

    /// The address of the next page: the same query with another page; `None` on the last one.
    pub fn next_link<T>(&self, path: &str, page: &Page<T>) -> Option<String> {
        let (param, value) = page.next.as_ref()?;
        Some(format!("{path}?{}", self.params.clone().with(param, value)))
    }

    fn compare(&self, a: &impl Listed, b: &impl Listed) -> Ordering {
        let by = |(field, descending): &(&str, bool)| {
            let order = compare(a.field(field).as_ref(), b.field(field).as_ref());
            if *descending { order.reverse() } else { order }
        };
        let decided = self.sort.iter().map(by).find(|order| order.is_ne());
        decided.unwrap_or(Ordering::Equal)
    }
}

fn id_of(item: &impl Listed) -> String {
    let id = item.field("id").unwrap_or_default();
    text_of(&id).into_owned()
}

fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Numbers by value, everything else as text.
fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => a
            .as_u64()
            .zip(b.as_u64())
            .map_or(Ordering::Equal, |(a, b)| a.cmp(&b)),
        (Some(a), Some(b)) => text_of(a).cmp(&text_of(b)),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

#[cfg(test)]
mod tests;
