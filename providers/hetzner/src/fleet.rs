//! The cloud servers as they were last seen. One list serves machines and routes.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::CloudError;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::client::Api;
use crate::wire::Server;

/// Lists servers on request, never twice at once, and keeps the last answer, with whatever younger is
/// learnt of single ones.
#[derive(Debug)]
pub(crate) struct Fleet {
    api: Api,
    last: Mutex<Option<Seen>>,
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
            last: Mutex::default(),
        }
    }

    /// All servers, as they are now.
    pub(crate) async fn now(&self) -> Result<Arc<Vec<Server>>, CloudError> {
        let mut last = self.last.lock().await;
        self.list(&mut last).await
    }

    /// All servers, as they were at most this long ago.
    pub(crate) async fn no_older_than(
        &self,
        age: Duration,
    ) -> Result<Arc<Vec<Server>>, CloudError> {
        let mut last = self.last.lock().await;
        match &*last {
            Some(seen) if seen.began.elapsed() <= age => Ok(Arc::clone(&seen.servers)),
            _ => self.list(&mut last).await,
        }
    }

    /// One server, as it is now. The last list learns of it.
    pub(crate) async fn server(&self, id: u64) -> Result<Server, CloudError> {
        let server = self.api.server(id).await?;
        self.meet(std::slice::from_ref(&server)).await;
        Ok(server)
    }

    /// The servers of this name, as they are now. The last list learns of them: a Node that was named
    /// after one of them is about to get a route there.
    pub(crate) async fn named(&self, name: &str) -> Result<Vec<Server>, CloudError> {
        let servers = self.api.servers_named(name).await?;
        self.meet(&servers).await;
        Ok(servers)
    }

    async fn meet(&self, met: &[Server]) {
        let mut last = self.last.lock().await;
        let Some(seen) = &mut *last else {
            return;
        };
        let servers = Arc::make_mut(&mut seen.servers);
        servers.retain(|known| met.iter().all(|server| server.id != known.id));
        servers.extend_from_slice(met);
    }

    /// Some servers besides this one that the last list showed. If `beside` is given, only of a list
    /// that showed that server too: any other may be the list of another project.
    pub(crate) async fn others_than(&self, id: u64, beside: Option<u64>, count: usize) -> Vec<u64> {
        let last = self.last.lock().await;
        let listed = last.iter().flat_map(|seen| &seen.listed).copied();
        if beside.is_some_and(|beside| !listed.clone().any(|id| id == beside)) {
            return Vec::new();
        }
        listed.filter(|other| *other != id).take(count).collect()
    }

    async fn list(&self, last: &mut Option<Seen>) -> Result<Arc<Vec<Server>>, CloudError> {
        let began = Instant::now();
        let servers = Arc::new(self.api.servers().await?);
        *last = Some(Seen {
            began,
            listed: servers.iter().map(|server| server.id).collect(),
            servers: Arc::clone(&servers),
        });
        Ok(servers)
    }
}
