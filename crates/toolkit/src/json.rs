//! JSON as clouds wrap it: one resource or a list under its name, and bodies with only the fields that are set.

use cloudkeel_api::CloudError;
use cloudkeel_http::{Client, Next, Page, Request, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::HasId;

/// A resource under its name: `{"server": {…}}`, or `{"servers": […]}` in a list.
pub trait Resource: HasId + DeserializeOwned {
    /// The name of one.
    const ONE: &'static str;
    /// The name of many, and the last part of their path.
    const MANY: &'static str;
}

/// Where the answer to a list says how it goes on, as JSON pointers into what stands beside the resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    /// The number of the next page, or a link with that number: `…?page=2`. The last page has neither.
    pub next: &'static str,
    /// How long the list is in all, if the cloud says that.
    pub total: &'static str,
}

impl Paging {
    /// Reads it, and how long the list is in all.
    pub(crate) fn read(
        self,
        response: &Response,
        rest: &Map<String, Value>,
    ) -> Result<(Next, Option<u64>), CloudError> {
        let rest = Value::Object(rest.clone());
        let next = match rest.pointer(self.next) {
            Some(Value::String(link)) => page_of_link(response, link)?,
            _ => Next::page(number(response, &rest, self.next)?),
        };
        Ok((next, number(response, &rest, self.total)?))
    }
}

fn number(response: &Response, rest: &Value, at: &str) -> Result<Option<u64>, CloudError> {
    let Some(value) = rest.pointer(at).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let why = || response.malformed(&format!("{at} is {value}, which is no number"));
    value.as_u64().map(Some).ok_or_else(why)
}

/// Says under which names resources stand and by which field they are known.
///
/// ```
/// #[derive(serde::Deserialize)]
/// struct Server { id: u64 }
///
/// cloudkeel_toolkit::resources! {
///     Server, id: u64 = "server", "servers";
/// }
/// ```
#[macro_export]
macro_rules! resources {
    ($($Resource:ty, $id:ident: $Id:ty = $one:literal, $many:literal;)+) => {$(
        impl $crate::HasId for $Resource {
            type Id = $Id;

            fn id(&self) -> $Id {
                self.$id.clone()
            }
        }

        impl $crate::Resource for $Resource {
            const ONE: &'static str = $one;
            const MANY: &'static str = $many;
        }
    )+};
}

/// The page that a link leads to.
fn page_of_link(response: &Response, link: &str) -> Result<Next, CloudError> {
    if link.is_empty() {
        return Ok(Next::End);
    }
    let query = link.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut pages = pairs.filter(|(name, _)| *name == "page");
    let page = pages.next().and_then(|(_, page)| page.parse().ok());
    let why = || response.malformed(&format!("the next page has no number: {link:?}"));
    Ok(Next::page(Some(page.ok_or_else(why)?)))
}

/// The resource of an answer.
pub fn one<T: Resource>(response: &Response) -> Result<T, CloudError> {
    field(response, T::ONE)
}

/// The field of an answer. `null` counts as absent, at any depth, as Go reads it: one odd resource of another owner must not
/// make a whole list unreadable where a field has a default.
pub fn field<T: DeserializeOwned>(response: &Response, name: &str) -> Result<T, CloudError> {
    take(response, &mut response.json()?, name)
}

/// All pages of a list. Complete, or an error. `next_page` reads how it goes on, and how long it is in all, from what stands
/// beside the resources.
pub async fn all<T: Resource>(
    client: &Client,
    request: Request,
    next_page: impl Fn(&Response, &Map<String, Value>) -> Result<(Next, Option<u64>), CloudError>,
) -> Result<Vec<T>, CloudError>
where
    T::Id: std::hash::Hash,
{
    let read = |response: &Response| {
        let mut answer: Map<String, Value> = response.json()?;
        let items = take(response, &mut answer, T::MANY)?;
        let (next, total) = next_page(response, &answer)?;
        Ok(Page { items, next, total })
    };
    let listing = client.pages(request).collect(HasId::id, read).await?;
    Ok(listing.items)
}

fn take<T: DeserializeOwned>(
    response: &Response,
    answer: &mut Map<String, Value>,
    name: &str,
) -> Result<T, CloudError> {
    let value = answer.remove(name);
    let mut value = value.ok_or_else(|| response.malformed(&format!("it has no {name:?}")))?;
    drop_nulls(&mut value);
    serde_json::from_value(value).map_err(|error| response.malformed(&format!("{name}: {error}")))
}

/// A body for a request. `None` is left out, at any depth: what is not asked for is not said.
///
/// ```
/// # use cloudkeel_toolkit::json;
/// #[derive(serde::Serialize)]
/// struct Service { listen_port: u16, cookie_name: Option<String> }
///
/// let service = Service { listen_port: 80, cookie_name: None };
/// assert_eq!(json::body(&service).to_string(), r#"{"listen_port":80}"#);
/// ```
pub fn body<T: Serialize>(value: &T) -> Value {
    let mut body = whole(value);
    drop_nulls(&mut body);
    body
}

/// A body for a request in which `null` says something, such as that a value is to be taken away.
pub fn whole<T: Serialize>(value: &T) -> Value {
    // Structs of texts, numbers and lists of them always become JSON.
    serde_json::to_value(value).unwrap_or_default()
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// For `#[serde(deserialize_with)]`: `null` is the default, as Go reads it. One odd resource of another owner
/// must not make a whole list unreadable.
pub fn null_as_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    let value: Option<T> = Option::deserialize(deserializer)?;
    Ok(value.unwrap_or_default())
}

/// Whether a resource is as it is asked for: everything is that is not asked for, and a value that the cloud does
/// not show is its default.
///
/// ```
/// # use cloudkeel_toolkit::json::is_met;
/// # use serde_json::json;
/// let present = json!({"listen_port": 80, "http": {"cookie_name": "c"}, "protocol": "http"});
/// assert!(is_met(&json!({"listen_port": 80, "http": {"sticky_sessions": false}}), &present));
/// assert!(!is_met(&json!({"listen_port": 80, "http": {"sticky_sessions": true}}), &present));
/// ```
pub fn is_met<D: Serialize, P: Serialize>(desired: &D, present: &P) -> bool {
    covers(&whole(present), &body(desired))
}

/// The fields of a resource that are asked for and not met, for a request that changes only those.
///
/// ```
/// # use cloudkeel_toolkit::json::unmet;
/// # use serde_json::json;
/// let differing = unmet(&json!({"name": "a", "weight": 2, "tags": null}), &json!({"name": "a", "weight": 1}));
/// assert_eq!(serde_json::Value::Object(differing), json!({"weight": 2}));
/// ```
pub fn unmet<D: Serialize, P: Serialize>(desired: &D, present: &P) -> Map<String, Value> {
    let (present, desired) = (whole(present), body(desired));
    let mut fields = match desired {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.retain(|name, desired| !covers(present.get(name).unwrap_or(&Value::Null), desired));
    fields
}

fn covers(present: &Value, desired: &Value) -> bool {
    match (present, desired) {
        (Value::Object(present), Value::Object(desired)) => {
            let mut fields = desired.iter();
            fields.all(|(name, desired)| covers(present.get(name).unwrap_or(&Value::Null), desired))
        }
        (Value::Null, desired) => is_default(desired),
        (present, desired) => present == desired,
    }
}

/// The fields in which two resources differ, in the words of a table: of `("sticky_sessions", "sticky sessions")` the
/// second. What is not in the table is not compared.
///
/// ```
/// # use cloudkeel_toolkit::json::differing;
/// # use serde_json::json;
/// let table = [("forwarding_rules", "ports"), ("tags", "tags")];
/// let (desired, present) = (json!({"forwarding_rules": [80]}), json!({"forwarding_rules": [], "id": 7}));
/// assert_eq!(differing(&desired, &present, &table), ["ports"]);
/// ```
pub fn differing<D: Serialize, P: Serialize>(
    desired: &D,
    present: &P,
    table: &[(&str, &'static str)],
) -> Vec<&'static str> {
    let (desired, present) = (whole(desired), whole(present));
    let fields = table.iter();
    let differing = fields.filter(|(field, _)| desired.get(field) != present.get(field));
    differing.map(|(_, words)| *words).collect()
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_default),
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_http::testing::{Reply, Script};
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Server {
        id: u64,
    }

    impl HasId for Server {
        type Id = u64;

        fn id(&self) -> u64 {
            self.id
        }
    }

    impl Resource for Server {
        const ONE: &'static str = "server";
        const MANY: &'static str = "servers";
    }

    const PAGING: Paging = Paging {
        next: "/next",
        total: "/meta/total",
    };

    async fn listed(replies: impl IntoIterator<Item = Value>) -> Result<Vec<Server>, CloudError> {
        let first = Request::get("/servers").query("page", 1);
        all(&client(replies), first, |response, rest| {
            PAGING.read(response, rest)
        })
        .await
    }

    fn client(replies: impl IntoIterator<Item = Value>) -> Client {
        let replies = replies.into_iter().map(|body| Reply::json(200, &body));
        let client = Client::builder("https://x").transport(Script::new(replies));
        client.build().unwrap()
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_last_page_by_number_or_by_link() {
        for next in [json!(2), json!("https://x/servers?per_page=1&page=2")] {
            let first = json!({"servers": [{"id": 1}], "next": next, "meta": {"total": 2}});
            for last in [json!(null), json!("")] {
                let last = json!({"servers": [{"id": 2}], "next": last, "meta": {"total": 2}});
                let found = listed([first.clone(), last]).await.unwrap();
                assert_eq!(found, [Server { id: 1 }, Server { id: 2 }]);
            }
        }
    }

    #[tokio::test]
    async fn a_list_that_does_not_say_how_it_goes_on_is_malformed() {
        for (case, rest) in [
            (
                "a link without a number",
                json!({"next": "https://x/servers"}),
            ),
            ("no number", json!({"next": true})),
            (
                "a total that is no number",
                json!({"meta": {"total": "two"}}),
            ),
        ] {
            let mut page = json!({"servers": [{"id": 1}]});
            page.as_object_mut()
                .unwrap()
                .extend(rest.as_object().unwrap().clone());
            let error = listed([page]).await.unwrap_err();
            assert_eq!(error.kind(), cloudkeel_api::ErrorKind::Malformed, "{case}");
        }
    }

    #[tokio::test]
    async fn an_answer_without_its_resource_is_malformed() {
        let client = client([json!({"other": 1}), json!({"server": {"id": "x"}})]);
        for _ in 0..2 {
            let answer = client.send(Request::get("/servers/1")).await.unwrap();
            let error = one::<Server>(&answer).unwrap_err();
            assert!(error.message().contains("server"), "{error}");
        }
    }

    #[test]
    fn what_is_asked_for_is_met_by_its_value_or_by_the_default() {
        for (case, desired, present, expected) in [
            ("not asked for", json!({"a": null}), json!({"a": 3}), true),
            ("the same", json!({"a": 3}), json!({"a": 3}), true),
            ("another", json!({"a": 3}), json!({"a": 4}), false),
            ("not shown", json!({"a": 3}), json!({}), false),
            (
                "not shown, and the default",
                json!({"a": 0, "b": []}),
                json!({}),
                true,
            ),
            (
                "deeper",
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1, "c": 2}}),
                true,
            ),
            (
                "deeper and another",
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 2}}),
                false,
            ),
            (
                "nothing inside is asked for",
                json!({"a": {"b": null}}),
                json!({"a": null}),
                true,
            ),
            (
                "a list as a whole",
                json!({"a": [1]}),
                json!({"a": [1, 2]}),
                false,
            ),
        ] {
            assert_eq!(is_met(&desired, &present), expected, "{case}");
        }
    }

    #[test]
    fn nulls_are_dropped_at_any_depth_and_kept_where_they_say_something() {
        let value = json!({"a": null, "b": {"c": null}, "d": [{"e": null, "f": 1}]});
        assert_eq!(body(&value), json!({"b": {}, "d": [{"f": 1}]}));
        assert_eq!(whole(&value), value);
    }
}
