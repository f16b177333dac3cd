//! One resource of a JSON API that a controller keeps as it should be, such as the firewall of a cluster.

use std::fmt::Display;
use std::hash::Hash;

use cloudkeel_api::{CloudError, Priority};
use serde::Serialize;
use tokio::sync::Mutex;

use crate::{Cause, Resource, RestApi};

/// The resource as it was last read or written, which saves the reading. Nothing is known after an error.
#[derive(Debug)]
pub struct KeptResource<T>(Mutex<Option<T>>);

impl<T> Default for KeptResource<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> KeptResource<T>
where
    T: Resource + Send + Sync,
    T::Id: Display + Hash + Send + Sync,
{
    /// Replaces the resource by what it should be, or creates it if none `is_it`. `desired` is given the present one, and
    /// answers nothing if it is as it should be. It is read again unless only Services have changed.
    pub async fn reconcile<B: Serialize + Send + Sync>(
        &self,
        api: &RestApi,
        cause: Cause,
        is_it: impl Fn(&T) -> bool + Send,
        desired: impl FnOnce(Option<&T>) -> Option<B> + Send,
    ) -> Result<(), CloudError> {
        let mut known = self.0.lock().await;
        let present = match (known.take(), cause) {
            (Some(present), Cause::Change) => Some(present),
            (present, _) => read(api, present, is_it).await?,
        };
        let Some(desired) = desired(present.as_ref()) else {
            *known = present;
            return Ok(());
        };
        *known = Some(match present {
            None => api.create(&desired).await?,
            Some(present) => match api.replace(&present.id(), &desired).await {
                Err(error) if error.is_not_found() => api.create(&desired).await?,
                replaced => replaced?,
            },
        });
        Ok(())
    }
}

/// By its ID if that is known, else among all.
async fn read<T>(
    api: &RestApi,
    known: Option<T>,
    is_it: impl Fn(&T) -> bool,
) -> Result<Option<T>, CloudError>
where
    T: Resource,
    T::Id: Display + Hash,
{
    if let Some(known) = known
        && let Some(found) = api.find(&known.id(), Priority::Background).await?
    {
        return Ok(Some(found));
    }
    let all: Vec<T> = api.every(Priority::Background).await?;
    Ok(all.into_iter().find(is_it))
}

#[cfg(test)]
mod tests {
    use cloudkeel_http::testing::{Reply, Script};
    use cloudkeel_http::{Client, CodeTable};
    use serde_json::{Value, json};

    use super::*;
    use crate::Paging;

    #[derive(Debug, Clone, serde::Deserialize)]
    struct Firewall {
        id: u64,
        name: String,
        ports: Vec<u16>,
    }

    crate::resources! {
        Firewall, id: u64 = "firewall", "firewalls";
    }

    const PAGING: Paging = Paging {
        next: "/next",
        total: "/total",
    };

    fn firewall(id: u64, name: &str, ports: &[u16]) -> Value {
        json!({"id": id, "name": name, "ports": ports})
    }

    fn one(id: u64, ports: &[u16]) -> Reply {
        Reply::json(200, &json!({"firewall": firewall(id, "ours", ports)}))
    }

    fn all(firewalls: &[Value]) -> Reply {
        Reply::json(200, &json!({"firewalls": firewalls}))
    }

    /// The calls that it takes to have these ports open, one after the other.
    async fn calls(
        replies: impl IntoIterator<Item = Reply>,
        asked: &[(Cause, &[u16])],
    ) -> Vec<String> {
        let script = Script::new(replies);
        let refusals = CodeTable::new("/code", "/message").not_found("not_found");
        let client = Client::builder("https://x")
            .transport(std::sync::Arc::<Script>::clone(&script))
            .error_map(refusals)
            .build();
        let api = RestApi::new(client.unwrap(), "", 50, PAGING);
        let kept = KeptResource::<Firewall>::default();
        for (cause, ports) in asked {
            let is_ours = |firewall: &Firewall| firewall.name == "ours";
            let reconciled = kept.reconcile(&api, *cause, is_ours, |present| {
                let is_same = present.is_some_and(|present| present.ports == *ports);
                (!is_same).then(|| json!({"name": "ours", "ports": ports}))
            });
            reconciled.await.unwrap();
        }
        let seen = script.seen();
        let line =
            |it: &http::Request<bytes::Bytes>| format!("{} {}", it.method(), it.uri().path());
        seen.iter().map(line).collect()
    }

    #[tokio::test]
    async fn it_is_created_once_and_replaced_only_if_it_differs() {
        let replies = [
            all(&[firewall(6, "theirs", &[80])]),
            one(7, &[80]),
            one(7, &[81]),
        ];
        let asked: [(Cause, &[u16]); 3] = [
            (Cause::Start, &[80]),
            (Cause::Change, &[80]),
            (Cause::Change, &[81]),
        ];
        let expected = ["GET /firewalls", "POST /firewalls", "PUT /firewalls/7"];
        assert_eq!(calls(replies, &asked).await, expected);
    }

    #[tokio::test]
    async fn after_a_period_it_is_read_by_its_id_and_found_again_by_name() {
        let gone = Reply::json(404, &json!({"code": "not_found", "message": "no"}));
        let ours = firewall(7, "ours", &[80]);
        let again = firewall(8, "ours", &[80]);
        let replies = [all(&[ours]), one(7, &[80]), gone, all(&[again])];
        let asked: [(Cause, &[u16]); 3] = [
            (Cause::Start, &[80]),
            (Cause::Period, &[80]),
            (Cause::Period, &[80]),
        ];
        let expected = [
            "GET /firewalls",
            "GET /firewalls/7",
            "GET /firewalls/7",
            "GET /firewalls",
        ];
        assert_eq!(calls(replies, &asked).await, expected);
    }

    #[tokio::test]
    async fn one_that_was_deleted_meanwhile_is_created_again() {
        let gone = Reply::json(404, &json!({"code": "not_found", "message": "no"}));
        let ours = firewall(7, "ours", &[80]);
        let replies = [all(&[ours]), gone, one(8, &[81])];
        let asked: [(Cause, &[u16]); 1] = [(Cause::Start, &[81])];
        let expected = ["GET /firewalls", "PUT /firewalls/7", "POST /firewalls"];
        assert_eq!(calls(replies, &asked).await, expected);
    }
}
