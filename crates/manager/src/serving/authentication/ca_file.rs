//! A client CA in a file.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::ca_source::{CaContent, CaSource};
use super::front_proxy::FrontProxy;

/// How often the file is checked for changes.
const POLL_PERIOD: Duration = Duration::from_secs(5);

/// A CA file, and the headers of front proxies as the flags give them.
pub(super) struct CaFile {
    path: PathBuf,
    front_proxy: FrontProxy,
    seen: Mutex<Option<String>>,
}

impl CaFile {
    pub(super) fn new(path: PathBuf, front_proxy: FrontProxy) -> Self {
        Self {
            path,
            front_proxy,
            seen: Mutex::default(),
        }
    }
}

#[async_trait]
impl CaSource for CaFile {
    fn name(&self) -> String {
        format!("the file {}", self.path.display())
    }

    async fn read(&self) -> Result<Option<CaContent>, String> {
        let bundle = tokio::fs::read_to_string(&self.path)
            .await
            .map_err(|error| error.to_string())?;
        *self.seen.lock().await = Some(bundle.clone());
        Ok(Some(CaContent {
            bundle,
            front_proxy: self.front_proxy.clone(),
        }))
    }

    async fn changed(&self) {
        loop {
            tokio::time::sleep(POLL_PERIOD).await;
            let now = tokio::fs::read_to_string(&self.path).await.ok();
            if *self.seen.lock().await != now {
                return;
            }
        }
    }
}
