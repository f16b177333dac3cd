//! A client in process: no socket, no thread, and a name that its writes are known by.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tower_service::Service;

use crate::access::Identity;
use crate::api::{Answer, AnswerBody, EmbeddedApi, InterposedCall};
use crate::interpose::{After, Before, Call, Interposer};
use crate::request::{Incoming, Place};
use crate::store::Verb;

impl EmbeddedApi {
    /// An administrator's client in process. Its writes stand under this name in the journal.
    ///
    /// It belongs to the runtime it is made in.
    pub fn client(&self, name: &str) -> Client {
        self.client_as(Identity::admin(name), None)
    }

    /// Such a client with an interposer.
    pub fn client_through(&self, name: &str, interposer: Arc<dyn Interposer>) -> Client {
        self.client_as(Identity::admin(name), Some(interposer))
    }

    /// A client of this identity, perhaps with an interposer.
    pub fn client_as(&self, identity: Identity, interposer: Option<Arc<dyn Interposer>>) -> Client {
        let service = InProcessService {
            api: self.clone(),
            identity,
            interposer,
        };
        Client::new(service, "default")
    }
}

/// Where the requests of one client arrive.
#[derive(Clone)]
struct InProcessService {
    api: EmbeddedApi,
    identity: Identity,
    interposer: Option<Arc<dyn Interposer>>,
}

impl Service<Request<Body>> for InProcessService {
    type Response = Response<AnswerBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<AnswerBody>>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        let sent_at = self.api.now();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            let incoming = Incoming::new(&parts, body, sent_at);
            service
                .api
                .ask(&service.identity, incoming, service.interposer)
                .await
        })
    }
}

impl EmbeddedApi {
    /// Brings a request to the API and the answer back, past the interposer.
    pub(crate) async fn ask(
        &self,
        who: &Identity,
        mut request: Incoming,
        interposer: Option<Arc<dyn Interposer>>,
    ) -> io::Result<Response<AnswerBody>> {
        let place = Place::find(&request.path);
        let accepted = request.accepted;
        let Some(interposer) = interposer else {
            let answer = self.answer(who, &request, &place);
            return Ok(self.respond(answer, accepted, None));
        };
        let call = describe(who, &request, &place);
        let interposed = InterposedCall {
            call,
            interposer: Arc::clone(&interposer),
        };
        let refuse = |refusal| {
            let answer = Answer::refusal(&refusal);
            Ok(self.respond(answer, accepted, None))
        };
        match interposer.before(&interposed.call).await {
            Before::Pass => {}
            Before::Refuse(refusal) => return refuse(refusal),
            Before::Disconnect => return Err(io::ErrorKind::ConnectionReset.into()),
            Before::Late(delay) => {
                self.answer_later(who.clone(), request, place, delay);
                return Err(io::ErrorKind::TimedOut.into());
            }
            Before::Stale(age) => {
                let version = self.version_before(age);
                request.query.read_as_of(version);
            }
        }
        let answer = self.answer(who, &request, &place);
        match interposer.after(&interposed.call, answer.code()).await {
            After::Deliver => Ok(self.respond(answer, accepted, Some(interposed))),
            After::Lose => Err(io::ErrorKind::ConnectionReset.into()),
            After::Replace(refusal) => refuse(refusal),
        }
    }

    /// Carries out a request whose client waits no longer, after a while.
    fn answer_later(&self, who: Identity, request: Incoming, place: Place, delay: Duration) {
        let api = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            api.answer(&who, &request, &place);
        });
    }

    /// The version of the last change that is older than this.
    fn version_before(&self, age: Duration) -> u64 {
        let until = self.now().checked_sub(age).unwrap_or(Timestamp::MIN);
        self.state().store.version_at(until)
    }
}

fn describe(who: &Identity, request: &Incoming, place: &Place) -> Call {
    let mut call = Call {
        client: who.name.clone(),
        verb: if request.method == http::Method::GET {
            Verb::Get
        } else {
            Verb::Create
        },
        group: String::new(),
        resource: request.path.clone(),
        subresource: None,
        namespace: None,
        name: None,
        body: request.json().unwrap_or(Value::Null),
    };
    match place {
        Place::Objects(target) => {
            call.verb = request.verb(target).unwrap_or(call.verb);
            target.kind.group.clone_into(&mut call.group);
            target.kind.plural.clone_into(&mut call.resource);
            call.subresource.clone_from(&target.subresource);
            call.namespace.clone_from(&target.namespace);
            call.name.clone_from(&target.name);
        }
        Place::Review(group, plural) => {
            call.group.clone_from(group);
            call.resource.clone_from(plural);
        }
        Place::Other(_) => {}
    }
    call
}
