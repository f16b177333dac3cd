//! Every call that only reads.

use cloudkeel_emulation::history::Table;
use cloudkeel_emulation::jobs::Job;
use cloudkeel_emulation::list::{
    Filter, LabelParam, Labels, ListApi, ListQuery, Listed, Page, Paging,
};
use cloudkeel_emulation::params::Params;
use cloudkeel_emulation::{Answer, Call};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{id_of, status_of};
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::state::{Certificate, LoadBalancer, Network, Project, ProjectContext, Server};

/// How lists are asked for. Parameters that are not known are left alone, as the API does.
const LIST: ListApi = ListApi {
    paging: Paging::Numbered {
        page: "page",
        per_page: "per_page",
        default: 25,
        max: 50,
        rejects_zero: true,
    },
    filters: &[
        Filter::number("id"),
        Filter::exact("name"),
        Filter::exact("status"),
        Filter::exact("type"),
    ],
    labels: LabelParam::Selector("label_selector"),
    sort: Some((
        "sort",
        &[
            "id", "name", "created", "status", "command", "started", "progress",
        ],
    )),
    rejects_unknown: false,
};

/// The page that a query asks for, whatever else it says.
pub(crate) fn page_of(query: &str) -> u64 {
    let page = Params::parse(query).number("page");
    page.ok().flatten().unwrap_or(1)
}

fn read_query(call: &Call<Operation>) -> Result<ListQuery, Refusal> {
    Ok(LIST.read(Params::parse(&call.query))?)
}

/// A resource with a table of its own.
pub(crate) trait Resource: Listed + Clone + Sized {
    /// Its kind, as the API writes it.
    const KIND: &'static str;

    fn table(project: &Project) -> &Table<Self>;
    fn table_mut(project: &mut Project) -> &mut Table<Self>;
    fn render(&self, context: &ProjectContext<'_>) -> Value;
}

macro_rules! resources {
    ($($Resource:ty = $kind:literal $table:ident $render:ident { $($field:literal: $value:expr,)* })+) => {
        $(
            impl Listed for $Resource {
                fn field(&self, name: &str) -> Option<Value> {
                    match name {
                        "id" => Some(json!(self.id)),
                        "name" | "command" => Some(json!(self.name)),
                        "created" | "started" => Some(json!(self.created)),
                        $($field => { let value: fn(&Self) -> Value = $value; Some(value(self)) })*
                        _ => None,
                    }
                }

                fn labels(&self) -> Option<&Labels> {
                    Some(&self.labels)
                }
            }

            impl Resource for $Resource {
                const KIND: &'static str = $kind;

                fn table(project: &Project) -> &Table<Self> {
                    &project.$table
                }

                fn table_mut(project: &mut Project) -> &mut Table<Self> {
                    &mut project.$table
                }

                fn render(&self, context: &ProjectContext<'_>) -> Value {
                    context.$render(self)
                }
            }
        )+
    };
}

resources! {
    Server = "server" servers render_server { "status": |server| json!(server.status), }
    Network = "network" networks render_network {}
    LoadBalancer = "load_balancer" balancers render_balancer {}
    Certificate = "certificate" certificates render_certificate {
        "type": |certificate| json!(certificate.kind()),
    }
}

/// An action in a list.
struct Action<'a>(&'a Job);

impl Listed for Action<'_> {
    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "id" | "created" | "started" => Some(json!(self.0.id)),
            "name" | "command" => Some(json!(self.0.command)),
            "status" | "progress" => Some(json!(status_of(self.0))),
            _ => None,
        }
    }
}

fn one(kind: &str, value: Value) -> Answer {
    let body = Map::from_iter([(kind.to_owned(), value)]);
    Answer::json(StatusCode::OK, &body)
}

fn many(kind: &str, page: Page<Value>) -> Answer {
    let last = page.last();
    let mut body = Map::new();
    body.insert(
        "meta".to_owned(),
        json!({"pagination": {
            "page": page.number,
            "per_page": page.per_page,
            "previous_page": (page.number > 1).then(|| page.number - 1),
            "next_page": (page.number < last).then(|| page.number + 1),
            "last_page": last,
            "total_entries": page.total,
        }}),
    );
    body.insert(format!("{kind}s"), Value::Array(page.items));
    Answer::json(StatusCode::OK, &body)
}

impl ProjectContext<'_> {
    pub(super) fn list<T: Resource>(&self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let page = read_query(call)?.select(T::table(self.project).values(self.view));
        Ok(many(T::KIND, page.map(|item| item.render(self))))
    }

    pub(super) fn get<T: Resource>(&self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let id = id_of(call, T::KIND)?;
        let found = T::table(self.project).seen(&id, self.view);
        let found = found.ok_or_else(|| Refusal::not_found(T::KIND, id))?;
        Ok(one(T::KIND, found.render(self)))
    }

    /// The resource in the path as it really is.
    pub(super) fn find<T: Resource>(&self, call: &Call<Operation>) -> Result<T, Refusal> {
        let id = id_of(call, T::KIND)?;
        let found = T::table(self.project).get(&id);
        let found = found.ok_or_else(|| Refusal::not_found(T::KIND, id))?;
        Ok(T::clone(found))
    }

    /// Actions are only given by ID.
    pub(super) fn list_actions(&self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let query = read_query(call)?;
        if query.wanted("id").is_empty() {
            let message = "listing all actions was removed: ask for them by id";
            let changelog = "https://docs.hetzner.cloud/changelog";
            let announcement = format!("{changelog}#2025-01-30-listing-arbitrary-actions");
            return Err(Refusal {
                details: json!({"announcement": announcement}),
                ..Refusal::new("deprecated_api_endpoint", message)
            });
        }
        let actions: Vec<_> = self.project.jobs.iter().map(Action).collect();
        let page = query.select(&actions);
        Ok(many("action", page.map(|action| self.action(action.0))))
    }

    pub(super) fn get_action(&self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let id = id_of(call, "action")?;
        let job = self.project.jobs.get(&id);
        let job = job.ok_or_else(|| Refusal::not_found("action", id))?;
        Ok(one("action", self.action(job)))
    }
}

/// What is the same in every project.
pub(super) fn catalogue(
    call: &Call<Operation>,
    kind: &str,
    all: Vec<Value>,
) -> Result<Answer, Refusal> {
    if call.operation.is_list() {
        let page = read_query(call)?.select(&all);
        return Ok(many(kind, page.map(Value::clone)));
    }
    let id = id_of(call, kind)?;
    let mut all = all.into_iter();
    let found = all.find(|entry| entry.get("id") == Some(&json!(id)));
    let found = found.ok_or_else(|| Refusal::not_found(kind, id))?;
    Ok(one(kind, found))
}
