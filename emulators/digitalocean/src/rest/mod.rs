//! What each call does. Plain functions over an account: no I/O, no waiting.

mod balancers;
mod firewalls;
mod tags;

use cloudkeel_emulation::list::{Filter, LabelParam, ListApi, Listed, Page, Paging};
use cloudkeel_emulation::params::Params;
use cloudkeel_emulation::{Answer, Call, InProcess};
use http::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::DigitalOceanCloud;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::resources::{Droplet, REGIONS};
use crate::state::AccountContext;

/// How lists are asked for. Parameters that are not known are left alone.
const LIST: ListApi = ListApi {
    paging: Paging::Numbered {
        page: "page",
        per_page: "per_page",
        default: 20,
        max: 200,
        rejects_zero: false,
    },
    filters: &[Filter::exact("name")],
    labels: LabelParam::None,
    sort: None,
    rejects_unknown: false,
};

/// The page that a query asks for, whatever else it says.
pub(crate) fn page_of(query: &str) -> u64 {
    let page = Params::parse(query).number("page");
    page.ok().flatten().unwrap_or(1)
}

type Performed = Result<Answer, Refusal>;

/// Carries out a call.
pub(crate) fn perform(context: &mut AccountContext<'_>, call: &Call<Operation>) -> Performed {
    let id = call.resource.as_deref().unwrap_or_default();
    let (account, view) = (&*context.account, context.view);
    match call.operation {
        Operation::GetAccount => Ok(one("account", &context.shown_account())),
        Operation::ListRegions => {
            let regions = REGIONS.iter().map(|region| json!(region));
            list(call, "regions", regions, |region| region)
        }
        Operation::ListDroplets => list(
            call,
            "droplets",
            account.droplets.values(view),
            Droplet::wire,
        ),
        Operation::GetDroplet => {
            let id: Option<u64> = id.parse().ok();
            let found = id.and_then(|id| account.droplets.seen(&id, view));
            let found = found.ok_or_else(Refusal::not_found)?;
            Ok(one("droplet", &found.wire()))
        }
        Operation::ListLoadBalancers => {
            let all = account.balancers.values(view);
            list(call, "load_balancers", all, |item| json!(item))
        }
        Operation::GetLoadBalancer => {
            let found = account.balancers.seen(id, view);
            let found = found.ok_or_else(Refusal::not_found)?;
            Ok(one("load_balancer", &**found))
        }
        Operation::ListCertificates => {
            let all = account.certificates.values(view);
            list(call, "certificates", all, |item| json!(item))
        }
        Operation::GetCertificate => {
            let found = account.certificates.seen(id, view);
            let found = found.ok_or_else(Refusal::not_found)?;
            Ok(one("certificate", &**found))
        }
        Operation::ListFirewalls => {
            let all = account.firewalls.values(view);
            list(call, "firewalls", all, |item| json!(item))
        }
        Operation::GetFirewall => {
            let found = account.firewalls.seen(id, view);
            let found = found.ok_or_else(Refusal::not_found)?;
            Ok(one("firewall", &**found))
        }
        Operation::CreateLoadBalancer => context.create_balancer(read(call)?),
        Operation::UpdateLoadBalancer => context.update_balancer(id, read(call)?),
        Operation::DeleteLoadBalancer => context.delete_balancer(id),
        Operation::CreateFirewall => context.create_firewall(read(call)?),
        Operation::UpdateFirewall => context.update_firewall(id, read(call)?),
        Operation::CreateTag => context.create_tag(&read(call)?),
        Operation::GetTag => context.get_tag(id),
        Operation::DeleteTag => context.delete_tag(id),
        Operation::TagResources => context.tag_resources(id, &read(call)?, true),
        Operation::UntagResources => context.tag_resources(id, &read(call)?, false),
        Operation::GetOwnRegion => {
            let [region, ..] = REGIONS;
            Ok(Answer::of(StatusCode::OK, region.slug.as_bytes().to_vec()))
        }
    }
}

/// Reads a body; the error names the field.
fn read<T: DeserializeOwned>(call: &Call<Operation>) -> Result<T, Refusal> {
    let mut body = serde_json::Deserializer::from_slice(&call.body);
    serde_path_to_error::deserialize(&mut body)
        .map_err(|error| Refusal::invalid(format!("{}: {}", error.path(), error.inner())))
}

fn one(name: &str, value: &impl Serialize) -> Answer {
    shown(StatusCode::OK, name, value)
}

fn shown(status: StatusCode, name: &str, value: &impl Serialize) -> Answer {
    let body = Map::from_iter([(name.to_owned(), json!(value))]);
    Answer::json(status, &body)
}

fn list<T: Listed>(
    call: &Call<Operation>,
    name: &str,
    items: impl Iterator<Item = T>,
    show: impl Fn(T) -> Value,
) -> Performed {
    let page = LIST.read(Params::parse(&call.query))?.select(items);
    let links = links(call, &page);
    let total = page.total;
    let mut body = Map::new();
    let items = page.map(show).items;
    body.insert(name.to_owned(), Value::Array(items));
    body.insert("links".to_owned(), links);
    body.insert("meta".to_owned(), json!({"total": total}));
    Ok(Answer::json(StatusCode::OK, &body))
}

/// Links to other pages, as far as there are any.
fn links<T>(call: &Call<Operation>, page: &Page<T>) -> Value {
    let host = call.headers.get(http::header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let base = host.map_or_else(
        || InProcess::URL.to_owned(),
        |host| format!("http://{host}"),
    );
    let params = Params::parse(&call.query);
    let link = |number: u64| {
        let query = params.clone().with("page", number);
        format!("{base}{}?{query}", call.operation.path())
    };
    let (number, last) = (page.number, page.last());
    let mut pages = Map::new();
    let mut add = |name: &str, number: u64| {
        pages.insert(name.to_owned(), json!(link(number)));
    };
    if number > 1 {
        add("first", 1);
        add("prev", number - 1);
    }
    if number < last {
        add("next", number + 1);
        add("last", last);
    }
    if pages.is_empty() {
        return json!({});
    }
    json!({"pages": pages})
}

impl AccountContext<'_> {
    fn shown_account(&self) -> Value {
        let uuid = &self.account.uuid;
        json!({
            "droplet_limit": 2000, "floating_ip_limit": 5, "reserved_ip_limit": 5, "volume_limit": 100,
            "email": "ops@example.com", "name": "Ops", "uuid": uuid, "email_verified": true,
            "status": "active", "status_message": "",
            "team": {"uuid": uuid, "name": DigitalOceanCloud::ACCOUNT},
        })
    }
}
