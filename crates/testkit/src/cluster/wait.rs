//! Waiting for a condition, with a deadline and a report.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::report::{Unmet, readable};

/// Short beside any reaction worth waiting for, and no load for an API server.
const POLL: Duration = Duration::from_millis(50);

/// What one look at the world says: what was waited for, or why it is not there yet.
///
/// A `bool`, an `Option`, and a `Result` around either can be returned from a look; an error counts as "not yet".
pub trait Observation {
    /// What there is in the end.
    type Found;

    /// The thing itself, or why it is not there yet.
    fn found(self) -> Result<Self::Found, String>;
}

impl Observation for bool {
    type Found = ();

    fn found(self) -> Result<(), String> {
        if self {
            Ok(())
        } else {
            Err("false".to_owned())
        }
    }
}

impl<T> Observation for Option<T> {
    type Found = T;

    fn found(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<O: Observation, E: Display> Observation for Result<O, E> {
    type Found = O::Found;

    fn found(self) -> Result<O::Found, String> {
        self.map_err(|error| error.to_string())?.found()
    }
}

/// Looks again and again until `look` finds something.
///
/// # Panics
/// If it does not within the deadline; the message says what the last look saw.
#[track_caller]
pub fn eventually<O, F, L>(
    what: &str,
    deadline: Duration,
    look: L,
) -> impl Future<Output = O::Found>
where
    O: Observation,
    F: Future<Output = O>,
    L: FnMut() -> F,
{
    let waiting = try_eventually(what, deadline, look);
    async { or_fail(waiting.await) }
}

/// Like [`eventually`], but returns the failure.
#[track_caller]
pub fn try_eventually<O, F, L>(
    what: &str,
    deadline: Duration,
    look: L,
) -> impl Future<Output = Result<O::Found, Unmet>>
where
    O: Observation,
    F: Future<Output = O>,
    L: FnMut() -> F,
{
    poll(what.to_owned(), deadline, Location::caller(), look)
}

async fn poll<O, F, L>(
    what: String,
    deadline: Duration,
    asked_at: &'static Location<'static>,
    mut look: L,
) -> Result<O::Found, Unmet>
where
    O: Observation,
    F: Future<Output = O>,
    L: FnMut() -> F,
{
    let end = Instant::now() + deadline;
    loop {
        let why = match look().await.found() {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        if Instant::now() >= end {
            return Err(Unmet::new(&what, deadline, asked_at, why));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Waits until the Node is as `wanted` and returns it.
///
/// # Panics
/// If it is not within the deadline; the message shows the Node and its latest events.
#[track_caller]
pub fn wait_for_node<'a>(
    client: &'a Client,
    name: &'a str,
    deadline: Duration,
    wanted: impl Fn(&Node) -> bool + 'a,
) -> impl Future<Output = Node> + 'a {
    let waiting = try_wait_for_node(client, name, deadline, wanted);
    async { or_fail(waiting.await) }
}

/// Like [`wait_for_node`], but returns the failure.
#[track_caller]
pub fn try_wait_for_node<'a>(
    client: &'a Client,
    name: &'a str,
    deadline: Duration,
    wanted: impl Fn(&Node) -> bool + 'a,
) -> impl Future<Output = Result<Node, Unmet>> + 'a {
    let subject = Subject::node(client, name, Location::caller());
    subject.until(deadline, wanted)
}

/// Waits until the Node is gone.
///
/// # Panics
/// If it is still there at the deadline; the message shows the Node and its latest events.
#[track_caller]
pub fn wait_for_node_gone<'a>(
    client: &'a Client,
    name: &'a str,
    deadline: Duration,
) -> impl Future<Output = ()> + 'a {
    let subject = Subject::node(client, name, Location::caller());
    async move { or_fail(subject.until_gone(deadline).await) }
}

/// Waits until the Service is as `wanted` and returns it.
///
/// # Panics
/// If it is not within the deadline; the message shows the Service and its latest events.
#[track_caller]
pub fn wait_for_service<'a>(
    client: &'a Client,
    namespace: &'a str,
    name: &'a str,
    deadline: Duration,
    wanted: impl Fn(&Service) -> bool + 'a,
) -> impl Future<Output = Service> + 'a {
    let waiting = try_wait_for_service(client, namespace, name, deadline, wanted);
    async { or_fail(waiting.await) }
}

/// Like [`wait_for_service`], but returns the failure.
#[track_caller]
pub fn try_wait_for_service<'a>(
    client: &'a Client,
    namespace: &'a str,
    name: &'a str,
    deadline: Duration,
    wanted: impl Fn(&Service) -> bool + 'a,
) -> impl Future<Output = Result<Service, Unmet>> + 'a {
    Subject::service(client, namespace, name, Location::caller()).until(deadline, wanted)
}

/// Waits until the Service is gone.
///
/// # Panics
/// If it is still there at the deadline; the message shows the Service and its latest events.
#[track_caller]
pub fn wait_for_service_gone<'a>(
    client: &'a Client,
    namespace: &'a str,
    name: &'a str,
    deadline: Duration,
) -> impl Future<Output = ()> + 'a {
    let subject = Subject::service(client, namespace, name, Location::caller());
    async move { or_fail(subject.until_gone(deadline).await) }
}

/// The object that is waited for.
struct Subject<'a, K> {
    api: Api<K>,
    events: Api<Event>,
    name: &'a str,
    asked_at: &'static Location<'static>,
}

impl<'a> Subject<'a, Node> {
    fn node(client: &Client, name: &'a str, asked_at: &'static Location<'static>) -> Self {
        Self {
            api: Api::all(client.clone()),
            // Those who write a Node's events do not agree on their namespace.
            events: Api::all(client.clone()),
            name,
            asked_at,
        }
    }
}

impl<'a> Subject<'a, Service> {
    fn service(
        client: &Client,
        namespace: &str,
        name: &'a str,
        asked_at: &'static Location<'static>,
    ) -> Self {
        Self {
            api: Api::namespaced(client.clone(), namespace),
            events: Api::namespaced(client.clone(), namespace),
            name,
            asked_at,
        }
    }
}

impl<K> Subject<'_, K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    async fn until(self, deadline: Duration, wanted: impl Fn(&K) -> bool) -> Result<K, Unmet> {
        self.poll("the wanted state", deadline, |seen| match seen {
            Some(object) if wanted(&object) => Ok(object),
            Some(object) => Err(readable(&object)),
            None => Err("it does not exist".to_owned()),
        })
        .await
    }

    async fn until_gone(self, deadline: Duration) -> Result<(), Unmet> {
        self.poll("the end", deadline, |seen| {
            seen.as_ref().map_or(Ok(()), |object| Err(readable(object)))
        })
        .await
    }

    async fn poll<T>(
        &self,
        what: &str,
        deadline: Duration,
        classify: impl Fn(Option<K>) -> Result<T, String>,
    ) -> Result<T, Unmet> {
        let kind = K::kind(&());
        let what = format!("{what} of {kind} {}", self.name);
        let look = || async {
            let seen = self.api.get_opt(self.name).await;
            seen.map_err(|error| error.to_string())
                .and_then(&classify)
                .map(Some)
        };
        match poll(what, deadline, self.asked_at, look).await {
            Ok(found) => Ok(found),
            Err(unmet) => Err(unmet.with_events(&self.events, &kind, self.name).await),
        }
    }
}

#[expect(clippy::panic, reason = "an assertion helper fails its test")]
fn or_fail<T>(outcome: Result<T, Unmet>) -> T {
    outcome.unwrap_or_else(|unmet| panic!("{unmet}"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn looks_again_until_something_is_found() {
        let looks = Cell::new(0);
        let found = eventually("the third look", Duration::from_mins(1), || async {
            looks.set(looks.get() + 1);
            match looks.get() {
                1 => Err("not connected"),
                2 => Ok(None),
                number => Ok(Some(number)),
            }
        })
        .await;
        assert_eq!(found, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_missed_deadline_names_the_condition_the_place_and_the_last_state() {
        let deadline = Duration::from_secs(2);
        for (case, outcome, last) in [
            (
                "false",
                try_eventually("a miracle", deadline, || async { false }).await,
                "last seen: false",
            ),
            (
                "nothing",
                try_eventually("a miracle", deadline, || async { None::<()> }).await,
                "last seen: nothing",
            ),
            (
                "an error",
                try_eventually("a miracle", deadline, || async {
                    Err::<bool, _>("no route")
                })
                .await,
                "last seen: no route",
            ),
        ] {
            let message = outcome.expect_err(case).to_string();
            for part in ["a miracle did not come about within 2s", "wait.rs:", last] {
                assert!(
                    message.contains(part),
                    "{case}: {part:?} is missing in: {message}"
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "a miracle did not come about within 1s")]
    async fn a_missed_deadline_fails_the_test() {
        eventually("a miracle", Duration::from_secs(1), || async { false }).await;
    }
}
