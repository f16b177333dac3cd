//! Lists: what they are asked for, and their pages.

use cloudkeel_emulation::Answer;
use cloudkeel_emulation::list::{Filter, LabelParam, Labels, ListApi, ListQuery, Listed, Paging};
use cloudkeel_emulation::params::Params;
use cloudkeel_provider_local::wire::{Balancer, List, Machine, PageInfo};
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Refusal, Request};

const FILTERS: &[Filter] = &[
    Filter::number("id"),
    Filter::exact("name"),
    Filter::exact("hostname"),
    Filter::ignore_case("uuid"),
];

/// How lists are asked for. More per page than the cloud gives is cut down to what it gives.
pub(super) fn read_query(query: &str, page_size: u64) -> Result<ListQuery, Refusal> {
    let api = ListApi {
        paging: Paging::Numbered {
            page: "page",
            per_page: "perPage",
            default: page_size,
            max: page_size,
            rejects_zero: false,
        },
        filters: FILTERS,
        labels: LabelParam::Pair("label"),
        sort: None,
        rejects_unknown: true,
    };
    let query = api.read(Params::parse(query));
    query.map_err(|error| Refusal::unreadable(error.to_string()))
}

/// Something on a page. The words of the API belong to its client, so lists cannot know them by themselves.
pub(super) struct Item<'a, T>(pub(super) &'a T, pub(super) Fields<T>);

/// The value of a field, and the labels.
pub(super) type Fields<T> = (fn(&T, &str) -> Option<Value>, fn(&T) -> Option<&Labels>);

impl<T> Listed for Item<'_, T> {
    fn field(&self, name: &str) -> Option<Value> {
        (self.1.0)(self.0, name)
    }

    fn labels(&self) -> Option<&Labels> {
        (self.1.1)(self.0)
    }
}

pub(super) const MACHINE: Fields<Machine> = (
    |machine, name| match name {
        "id" => Some(json!(machine.id)),
        "name" => Some(json!(machine.name)),
        "hostname" => machine.hostname.as_ref().map(|hostname| json!(hostname)),
        "uuid" => Some(json!(machine.uuid)),
        _ => None,
    },
    |machine| Some(&machine.labels),
);

pub(super) const BALANCER: Fields<Balancer> = (
    |balancer, name| match name {
        "id" => Some(json!(balancer.id)),
        "name" => Some(json!(balancer.name)),
        _ => None,
    },
    |balancer| Some(&balancer.labels),
);

/// The page of a list that a call asks for.
pub(super) fn paged<'a, T: Serialize + 'a>(
    request: &Request<'_>,
    query: &ListQuery,
    items: impl Iterator<Item = &'a T>,
    fields: Fields<T>,
) -> Answer {
    let page = query.select(items.map(|item| Item(item, fields)));
    let info = PageInfo {
        number: page.number,
        per_page: page.per_page,
        total: page.total,
        next: query.next_link(request.call.operation.path(), &page),
    };
    let items = page.items.iter().map(|item| item.0).collect();
    Answer::json(StatusCode::OK, &List { items, page: info })
}
