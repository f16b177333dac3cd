//! The cloud servers as they were last seen. One list serves machines and routes.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::CloudError;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::client::Api;
use crate::wire::Server;

/// Lists servers on request, never twice at once, and keeps the last answer.
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

    /// Some servers besides this one that the last list showed. If `beside` is given, only of a list
    /// that showed that server too: any other may be the list of another project.
    pub(crate) async fn others_than(&self, id: u64, beside: Option<u64>, count: usize) -> Vec<u64> {
        let last = self.last.lock().await;
        let Some((_, servers)) = &*last else {
            return Vec::new();
        };
        let shows = |wanted: u64| servers.iter().any(|server| server.id == wanted);
        if beside.is_some_and(|beside| !shows(beside)) {
            return Vec::new();
        }
        let ids = servers.iter().map(|server| server.id);
        ids.filter(|other| *other != id).take(count).collect()
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
