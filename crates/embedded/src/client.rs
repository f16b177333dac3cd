//! A client in process: no socket, no thread, and a name that its writes are known by.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tower_service::Service;

use crate::access::Identity;
use crate::api::{Answer, AnswerBody, EmbeddedApi, Way};
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

    /// Such a client with somebody on its way.
    pub fn client_through(&self, name: &str, interposer: Arc<dyn Interposer>) -> Client {
        self.client_as(Identity::admin(name), Some(interposer))
    }

    /// A client of somebody, perhaps with somebody else on its way.
    pub fn client_as(&self, identity: Identity, interposer: Option<Arc<dyn Interposer>>) -> Client {
        let door = Door {
            api: self.clone(),
            identity,
            interposer,
        };
        Client::new(door, "default")
    }
}

/// Where the requests of one client arrive.
#[derive(Clone)]
struct Door {
    api: EmbeddedApi,
    identity: Identity,
    interposer: Option<Arc<dyn Interposer>>,
}

impl Service<Request<Body>> for Door {
    type Response = Response<AnswerBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<AnswerBody>>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let door = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            let incoming = Incoming::new(&parts, body);
            door.api
                .ask(&door.identity, &incoming, door.interposer)
                .await
        })
    }
}

impl EmbeddedApi {
    /// Brings a request to the API and the answer back, past whoever stands on the way.
    pub(crate) async fn ask(
        &self,
        who: &Identity,
        request: &Incoming,
        interposer: Option<Arc<dyn Interposer>>,
    ) -> io::Result<Response<AnswerBody>> {
        let place = Place::find(&request.path);
        let Some(interposer) = interposer else {
            let answer = self.answer(who, request, &place);
            return Ok(self.respond(answer, None));
        };
        let call = describe(who, request, &place);
        let way = Way {
            call,
            interposer: Arc::clone(&interposer),
        };
        match interposer.before(&way.call).await {
            Before::Pass => {}
            Before::Refuse(refusal) => return Ok(self.respond(Answer::refusal(&refusal), None)),
            Before::Disconnect => return Err(io::ErrorKind::ConnectionReset.into()),
        }
        let answer = self.answer(who, request, &place);
        match interposer.after(&way.call, answer.code()).await {
            After::Deliver => Ok(self.respond(answer, Some(way))),
            After::Lose => Err(io::ErrorKind::ConnectionReset.into()),
            After::Replace(refusal) => Ok(self.respond(Answer::refusal(&refusal), None)),
        }
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
