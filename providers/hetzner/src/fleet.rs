//! The cloud servers as they were last seen. One list serves machines and routes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::CloudError;
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

use crate::client::Api;
use crate::wire::Server;

/// Lists servers on request, never twice at once, and keeps the last answer, with whatever younger is
/// learnt of single ones.
#[derive(Debug)]
pub(crate) struct Fleet {
    api: Api,
    /// Whoever has it reads the list. Nobody else waits for that: a list may take minutes when requests
    /// are scarce, while a look-up that somebody needs now does not.
    turn: Turn<()>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    last: Option<Seen>,
    /// Servers that were asked for by themselves since the last list began, and when they answered.
    met: Vec<(Instant, Server)>,
}

#[derive(Debug)]
struct Seen {
    began: Instant,
    /// What the list showed, by one and the same token.
    listed: Vec<u64>,
    /// The same, and who was met since then.
    servers: Arc<Vec<Server>>,
}

impl Fleet {
    pub(crate) fn new(api: Api) -> Self {
        Self {
            api,
            turn: Turn::default(),
            known: Mutex::default(),
        }
    }

    /// The project.
    pub(crate) const fn api(&self) -> &Api {
        &self.api
    }

    /// All servers, as they are now.
    pub(crate) async fn now(&self) -> Result<Arc<Vec<Server>>, CloudError> {
        let _turn = self.turn.lock().await;
        self.list().await
    }

    /// All servers, as they were at most this long ago.
    pub(crate) async fn no_older_than(
        &self,
        age: Duration,
    ) -> Result<Arc<Vec<Server>>, CloudError> {
        if let Some(servers) = self.known().no_older_than(age) {
            return Ok(servers);
        }
        let _turn = self.turn.lock().await;
        // Somebody else may have read it meanwhile.
        let listed = self.known().no_older_than(age);
        match listed {
            Some(servers) => Ok(servers),
            None => self.list().await,
        }
    }

    /// One server, as it is now. The last list learns of it.
    pub(crate) async fn server(&self, id: u64) -> Result<Server, CloudError> {
        let server = self.api.server(id).await?;
        self.known().meet(std::slice::from_ref(&server));
        Ok(server)
    }

    /// The servers of this name, as they are now. The last list learns of them: a Node that was named
    /// after one of them is about to get a route there.
    pub(crate) async fn named(&self, name: &str) -> Result<Vec<Server>, CloudError> {
        let servers = self.api.servers_named(name).await?;
        self.known().meet(&servers);
        Ok(servers)
    }

    /// Some servers besides this one that the last list showed. If `beside` is given, only of a list
    /// that showed that server too: any other may be the list of another project.
    pub(crate) fn others_than(&self, id: u64, beside: Option<u64>, count: usize) -> Vec<u64> {
        let known = self.known();
        let listed = known.last.iter().flat_map(|seen| &seen.listed).copied();
        if beside.is_some_and(|beside| !listed.clone().any(|id| id == beside)) {
            return Vec::new();
        }
        listed.filter(|other| *other != id).take(count).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn list(&self) -> Result<Arc<Vec<Server>>, CloudError> {
        let began = Instant::now();
        let servers = self.api.servers().await?;
        Ok(self.known().replace(began, servers))
    }
}

impl Known {
    fn no_older_than(&self, age: Duration) -> Option<Arc<Vec<Server>>> {
        let fresh = self.last.as_ref();
        let fresh = fresh.filter(|seen| seen.began.elapsed() <= age);
        fresh.map(|seen| Arc::clone(&seen.servers))
    }

    fn meet(&mut self, met: &[Server]) {
        if let Some(seen) = &mut self.last {
            seen.meet(met);
        }
        let now = Instant::now();
        self.met.retain(|(_, known)| !is_among(met, known));
        self.met
            .extend(met.iter().map(|server| (now, server.clone())));
    }

    /// Takes a new list. Pages that were read before a server was met may lack it.
    fn replace(&mut self, began: Instant, servers: Vec<Server>) -> Arc<Vec<Server>> {
        let mut seen = Seen {
            began,
            listed: servers.iter().map(|server| server.id).collect(),
            servers: Arc::new(servers),
        };
        self.met.retain(|(at, _)| *at >= began);
        for (_, server) in &self.met {
            seen.meet(std::slice::from_ref(server));
        }
        let servers = Arc::clone(&seen.servers);
        self.last = Some(seen);
        servers
    }
}

impl Seen {
    fn meet(&mut self, met: &[Server]) {
        let servers = Arc::make_mut(&mut self.servers);
        servers.retain(|known| !is_among(met, known));
        servers.extend_from_slice(met);
    }
}

fn is_among(met: &[Server], known: &Server) -> bool {
    met.iter().any(|server| server.id == known.id)
}
