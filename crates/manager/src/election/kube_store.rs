//! The lease in a Kubernetes API server.

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_controllers::runtime::ErrorText;
use futures::{StreamExt, pin_mut};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::core::DynamicObject;
use kube::{Api, Client, Config};

use super::ElectionConfig;
use super::record::Record;
use super::store::{LeaseStore, StoreError, StoredLease, resource};
use crate::client::ApiServerConfig;

/// One Lease in an API server.
///
/// It should have its own client ([`election_client`]): a renewal must not wait for the controllers' requests.
#[derive(Clone)]
pub struct KubeLease {
    api: Api<DynamicObject>,
    namespace: String,
    name: String,
    request_timeout: Duration,
    /// A leader renews far more often than this, so a silent watch is dead, or there is no leader.
    longest_silence: Duration,
}

impl KubeLease {
    /// The lease that the configuration names.
    pub fn new(client: Client, config: &ElectionConfig) -> Self {
        Self {
            api: Api::namespaced_with(client, &config.namespace, &resource()),
            namespace: config.namespace.clone(),
            name: config.name.clone(),
            request_timeout: config.request_timeout(),
            longest_silence: config.lease_duration * 2,
        }
    }

    async fn ask(
        &self,
        request: impl Future<Output = kube::Result<DynamicObject>>,
    ) -> Result<StoredLease, StoreError> {
        let answer = self.in_time(request).await?;
        StoredLease::read(answer)
    }

    async fn in_time<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.request_timeout, request).await {
            Ok(answer) => answer.map_err(|error| meaning(&error)),
            Err(_) => Err(StoreError::TimedOut(self.request_timeout)),
        }
    }
}

#[async_trait]
impl LeaseStore for KubeLease {
    async fn get(&self) -> Result<Option<StoredLease>, StoreError> {
        let found = self.in_time(self.api.get_opt(&self.name)).await?;
        found.map(StoredLease::read).transpose()
    }

    async fn create(&self, record: &Record) -> Result<StoredLease, StoreError> {
        let lease = StoredLease::fresh(&self.namespace, &self.name, record);
        self.ask(self.api.create(&PostParams::default(), &lease))
            .await
    }

    async fn update(
        &self,
        lease: &StoredLease,
        record: &Record,
    ) -> Result<StoredLease, StoreError> {
        let next = lease.with(record);
        self.ask(self.api.replace(&self.name, &PostParams::default(), &next))
            .await
    }

    async fn watch(
        &self,
        on_change: &(dyn Fn(Option<Record>) + Send + Sync),
    ) -> Result<(), StoreError> {
        let only_ours = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        // Version 0 returns the current state first, which needs no permission to list.
        let events = self.in_time(self.api.watch(&only_ours, "0")).await?;
        pin_mut!(events);
        while let Ok(Some(event)) = tokio::time::timeout(self.longest_silence, events.next()).await
        {
            match event.map_err(|error| meaning(&error))? {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                    on_change(Some(StoredLease::read(lease)?.record().clone()));
                }
                WatchEvent::Deleted(_) => on_change(None),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => {
                    return Err(StoreError::Failed(ErrorText(status.as_ref()).to_string()));
                }
            }
        }
        Ok(())
    }
}

/// What an error of the client means for an election.
fn meaning(error: &kube::Error) -> StoreError {
    match error {
        kube::Error::Api(status) if status.code == 409 => StoreError::Conflict,
        kube::Error::Api(status) if status.code == 403 => {
            StoreError::Forbidden(status.message.clone())
        }
        kube::Error::Api(status) => {
            StoreError::Failed(format!("{} ({})", status.message, status.code))
        }
        other => StoreError::Failed(ErrorText(other).to_string()),
    }
}

/// A client for an election: its own connections, no retries by the library, and a user agent by which the API
/// server's audit log distinguishes it from the controllers.
pub fn election_client(base: &ApiServerConfig, election: &ElectionConfig) -> kube::Result<Client> {
    let mut server = base.clone();
    let config = &mut server.config;
    config.connect_timeout = Some(election.request_timeout());
    config.headers.retain(|(name, _)| name != USER_AGENT);
    if let Ok(agent) = HeaderValue::from_str(&user_agent(&base.config)) {
        config.headers.push((USER_AGENT, agent));
    }
    server.plain_client()
}

fn user_agent(base: &Config) -> String {
    let given = base.headers.iter().find(|(name, _)| name == USER_AGENT);
    let given = given.and_then(|(_, value)| value.to_str().ok());
    let program = given.unwrap_or(concat!("cloudkeel/", env!("CARGO_PKG_VERSION")));
    format!("{program}/leader-election")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use futures::stream;
    use http::{Request, Response};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use kube::core::Status;
    use tower_service::Service;

    use super::*;

    fn answered(code: u16, reason: &str) -> kube::Error {
        kube::Error::Api(Status::failure("no", reason).with_code(code).boxed())
    }

    /// Returns this response to every request, and then nothing more.
    #[derive(Clone)]
    enum Server {
        Mute,
        TellsOnce(&'static str),
    }

    type Stream = Pin<Box<dyn futures::Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;
    type Answer = Response<StreamBody<Stream>>;

    impl Service<Request<kube::client::Body>> for Server {
        type Response = Answer;
        type Error = Infallible;
        type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

        fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _request: Request<kube::client::Body>) -> Self::Future {
            let Self::TellsOnce(text) = *self else {
                return Box::pin(std::future::pending());
            };
            let recorded = stream::iter([Ok(Frame::data(Bytes::from_static(text.as_bytes())))]);
            let body: Stream = Box::pin(recorded.chain(stream::pending()));
            Box::pin(async { Ok(Response::new(StreamBody::new(body))) })
        }
    }

    fn lease_of(server: Server) -> KubeLease {
        let client = Client::new(server, "kube-system");
        KubeLease::new(client, &ElectionConfig::new("kube-system", "ccm", "me"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_delays_no_caller() {
        let store = lease_of(Server::Mute);
        let late = StoreError::TimedOut(Duration::from_secs(5));
        assert_eq!(store.get().await.unwrap_err(), late);
        let created = store.create(&Record::default()).await;
        assert_eq!(created.unwrap_err(), late);
        assert_eq!(store.watch(&|_| ()).await.unwrap_err(), late);
        assert_eq!(late.to_string(), "no response within 5 s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_falls_silent_is_ended() {
        let store = lease_of(Server::TellsOnce(
            "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"ccm\"},\
             \"spec\":{\"holderIdentity\":\"a\"}}}\n",
        ));
        let seen = Mutex::new(Vec::new());
        let began = tokio::time::Instant::now();
        let ended = store
            .watch(&|record| seen.lock().unwrap().push(record))
            .await;
        assert_eq!(ended, Ok(()));
        assert_eq!(began.elapsed().as_secs(), 30, "twice the lease duration");
        let seen = seen.into_inner().unwrap();
        let holders: Vec<_> = seen
            .into_iter()
            .flatten()
            .map(|record| record.holder)
            .collect();
        assert_eq!(holders, ["a"]);
    }

    #[test]
    fn errors_are_distinguished_by_what_an_election_does_about_them() {
        for (case, error, expected) in [
            (
                "changed meanwhile",
                answered(409, "Conflict"),
                StoreError::Conflict,
            ),
            (
                "created meanwhile",
                answered(409, "AlreadyExists"),
                StoreError::Conflict,
            ),
            (
                "a role without the verb",
                answered(403, "Forbidden"),
                StoreError::Forbidden("no".to_owned()),
            ),
            (
                "an overloaded server",
                answered(503, "ServiceUnavailable"),
                StoreError::Failed("no (503)".to_owned()),
            ),
            (
                "a lease deleted before the update",
                answered(404, "NotFound"),
                StoreError::Failed("no (404)".to_owned()),
            ),
        ] {
            assert_eq!(meaning(&error), expected, "{case}");
        }
    }

    #[test]
    fn the_user_agent_ends_with_leader_election() {
        let mut config = Config::new("https://127.0.0.1".parse().unwrap());
        let own = user_agent(&config);
        assert!(own.starts_with("cloudkeel/"), "{own}");
        assert!(own.ends_with("/leader-election"), "{own}");
        let given = HeaderValue::from_static("hcloud/1.0");
        config.headers.push((USER_AGENT, given));
        assert_eq!(user_agent(&config), "hcloud/1.0/leader-election");
    }
}
