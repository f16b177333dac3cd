//! A client between the controller and the API server, through which things go wrong.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::json;
use tower::Service;

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    /// Just before the first write, another client sets this network.
    SetFirst(&'static str),
    /// The first so many writes of every Node are carried out, but their answers never arrive.
    LoseAnswers(usize),
}

/// A client between the controller and the API server.
#[derive(Clone)]
pub(crate) struct Interposer {
    server: Client,
    manner: Manner,
    /// The Nodes that were written, in order.
    writes: Arc<Mutex<Vec<String>>>,
}

impl Interposer {
    pub(crate) fn before(server: Client, manner: Manner) -> Self {
        let writes = Arc::default();
        Self {
            server,
            manner,
            writes,
        }
    }

    /// The client that the controller is to use.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// The Nodes that the controller wrote, in order.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.writes.lock().unwrap().clone()
    }

    /// Notes a write and returns how many there were before: of all Nodes, and of this one.
    fn note(&self, node: &str) -> (usize, usize) {
        let mut writes = self.writes.lock().unwrap();
        let of_this = writes.iter().filter(|written| *written == node).count();
        writes.push(node.to_owned());
        (writes.len() - 1, of_this)
    }

    async fn set_by_hand(&self, node: &str, cidr: &str) {
        let nodes: Api<Node> = Api::all(self.server.clone());
        let patch = Patch::Merge(json!({"spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}));
        let set = nodes.patch(node, &PatchParams::default(), &patch).await;
        set.expect("no other client was faster");
    }

    async fn pass_on(self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        if request.method() != Method::PATCH {
            return self.server.send(request).await;
        }
        let path = request.uri().path();
        let node = path.rsplit('/').next().unwrap_or_default().to_owned();
        let (earlier, earlier_of_this) = self.note(&node);
        if let Manner::SetFirst(cidr) = self.manner
            && earlier == 0
        {
            self.set_by_hand(&node, cidr).await;
        }
        let answer = self.server.send(request).await?;
        match self.manner {
            Manner::LoseAnswers(lost) if earlier_of_this < lost => {
                Err(kube::Error::Service("the answer was lost".into()))
            }
            _ => Ok(answer),
        }
    }
}

impl Service<Request<Body>> for Interposer {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, kube::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().pass_on(request))
    }
}
