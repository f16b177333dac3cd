//! Authorities in a file.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::authority_source::{CaContent, CaSource};
use super::front_proxy::FrontProxy;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A file with authorities, and the headers of front proxies as flags gave them.
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
            tokio::time::sleep(LOOK_EVERY).await;
            let now = tokio::fs::read_to_string(&self.path).await.ok();
            if *self.seen.lock().await != now {
                return;
            }
        }
    }
}
