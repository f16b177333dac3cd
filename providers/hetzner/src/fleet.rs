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
    last: Mutex<Option<(Instant, Arc<Vec<Server>>)>>,
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
            Some((at, servers)) if at.elapsed() <= age => Ok(Arc::clone(servers)),
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
        let Some((_, servers)) = &mut *last else {
            return;
        };
        let servers = Arc::make_mut(servers);
        servers.retain(|known| met.iter().all(|server| server.id != known.id));
        servers.extend_from_slice(met);
    }

    /// Some servers besides this one that the last list showed.
    pub(crate) async fn others_than(&self, id: u64, count: usize) -> Vec<u64> {
        let last = self.last.lock().await;
        let servers = last.iter().flat_map(|(_, servers)| servers.iter());
        let others = servers.map(|server| server.id).filter(|other| *other != id);
        others.take(count).collect()
    }

    async fn list(
        &self,
        last: &mut Option<(Instant, Arc<Vec<Server>>)>,
    ) -> Result<Arc<Vec<Server>>, CloudError> {
        let began = Instant::now();
        let servers = Arc::new(self.api.servers().await?);
        *last = Some((began, Arc::clone(&servers)));
        Ok(servers)
    }
}
