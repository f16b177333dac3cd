//! Kubeconfigs: the file of the flag, or those in `$KUBECONFIG`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::ConnectError;

/// A kubeconfig, and where it is from.
pub(super) struct Found {
    origin: &'static str,
    paths: Vec<PathBuf>,
}

impl Found {
    /// The file of `--kubeconfig`.
    pub(super) fn by_flag(path: &Path) -> Self {
        Self {
            origin: "--kubeconfig",
            paths: vec![path.to_owned()],
        }
    }

    /// The files in the variable. As with kubectl, missing files are skipped.
    pub(super) fn by_variable(value: &OsStr) -> Option<Self> {
        let paths = std::env::split_paths(value).filter(|path| path.is_file());
        let paths: Vec<_> = paths.collect();
        (!paths.is_empty()).then_some(Self {
            origin: "$KUBECONFIG",
            paths,
        })
    }

    /// The settings of the current context, and its proxy. If several files set a value, the first wins.
    pub(super) async fn read(&self) -> Result<(Config, Option<String>), ConnectError> {
        let mut merged = Kubeconfig::default();
        for path in &self.paths {
            let read = Kubeconfig::read_from(path).and_then(|next| merged.merge(next));
            merged = read.map_err(|error| self.wrong(path, &error))?;
        }
        let proxy_url = take_proxy_url(&mut merged);
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(merged, &options).await;
        let first = self.paths.first().map_or(Path::new(""), PathBuf::as_path);
        let config = config.map_err(|error| self.wrong(first, &error))?;
        Ok((config, proxy_url))
    }

    fn wrong(&self, path: &Path, error: &KubeconfigError) -> ConnectError {
        ConnectError::Kubeconfig {
            origin: self.origin,
            path: path.display().to_string(),
            reason: without_contents(error),
        }
    }
}

/// Takes the `proxy-url` of the current cluster. All of them are replaced by one that nothing uses: otherwise the
/// client library would read `HTTPS_PROXY`, and compare `NO_PROXY` with the proxy's own name.
fn take_proxy_url(kubeconfig: &mut Kubeconfig) -> Option<String> {
    let current = kubeconfig.current_context.as_deref();
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|context| Some(context.name.as_str()) == current);
    let wanted = context.and_then(|context| Some(context.context.as_ref()?.cluster.clone()));
    let mut taken = None;
    for named in &mut kubeconfig.clusters {
        let Some(cluster) = &mut named.cluster else {
            continue;
        };
        let given = cluster
            .proxy_url
            .replace("http://unused.invalid".to_owned());
        if Some(&named.name) == wanted.as_ref() {
            taken = given.filter(|url| !url.is_empty());
        }
    }
    taken
}

/// What is wrong with a kubeconfig, without its content: the parser quotes lines, which may contain tokens and keys.
fn without_contents(error: &KubeconfigError) -> String {
    let KubeconfigError::Parse(error) = error else {
        return error.to_string();
    };
    let place = error.location().map_or_else(String::new, |at| {
        format!(": see line {}, column {}", at.line(), at.column())
    });
    format!("expected a kubeconfig in YAML{place}")
}
