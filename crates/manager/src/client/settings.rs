//! How to reach the API server.

use cloudkeel_controllers::runtime::Brief;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::options::ApiServerOptions;

/// Why there is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig is missing or wrong.
    #[error("--kubeconfig: {path:?}: {reason}")]
    Kubeconfig {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// The address of the API server cannot be read.
    #[error("--master: {value:?}: expected a URL such as `https://10.0.0.1:6443`: {reason}")]
    Master {
        /// What was given.
        value: String,
        /// Why.
        reason: String,
    },
    /// Not in a Pod, and no kubeconfig.
    #[error(
        "no way to the API server: give --kubeconfig or --master, or run in a Pod with a \
         ServiceAccount: {0}"
    )]
    NotInCluster(kube::config::InClusterError),
    /// The client could not be built.
    #[error("cannot build a client for the API server: {}", Brief(.0))]
    Client(kube::Error),
}

/// The kubeconfig, else the address, else the ServiceAccount of the Pod. As with the Go CCMs, the
/// variable `KUBECONFIG` is not read: what runs in production is what the command line says.
pub async fn connect_settings(options: &ApiServerOptions) -> Result<Config, ConnectError> {
    let mut config = match (&options.kubeconfig, &options.master) {
        (Some(path), _) => {
            let wrong = |error: KubeconfigError| ConnectError::Kubeconfig {
                path: path.display().to_string(),
                reason: without_contents(&error),
            };
            let kubeconfig = Kubeconfig::read_from(path).map_err(wrong)?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .map_err(wrong)?
        }
        (None, Some(master)) => Config::new(parse_master(master)?),
        (None, None) => Config::incluster_env().map_err(ConnectError::NotInCluster)?,
    };
    if let Some(master) = &options.master {
        config.cluster_url = parse_master(master)?;
    }
    config.read_timeout = options.read_timeout;
    // A connection that was idle is not silent: time counts from the request on.
    config.reset_reader_on_write = true;
    Ok(config)
}

/// What is wrong with a kubeconfig, and nothing of what stands in it: the parser quotes the lines around a mistake,
/// where tokens and keys stand.
fn without_contents(error: &KubeconfigError) -> String {
    let KubeconfigError::Parse(error) = error else {
        return error.to_string();
    };
    let place = error.location().map_or_else(String::new, |at| {
        format!(": see line {}, column {}", at.line(), at.column())
    });
    format!("expected a kubeconfig in YAML{place}")
}

fn parse_master(master: &str) -> Result<http::Uri, ConnectError> {
    let wrong = |reason: String| ConnectError::Master {
        value: master.to_owned(),
        reason,
    };
    let with_scheme = if master.contains("://") {
        master.to_owned()
    } else {
        format!("http://{master}")
    };
    let uri: http::Uri = with_scheme
        .parse()
        .map_err(|e: http::uri::InvalidUri| wrong(e.to_string()))?;
    match uri.host() {
        Some(host) if !host.is_empty() => Ok(uri),
        _ => Err(wrong("there is no host in it".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(master: Option<&str>, kubeconfig: Option<&str>) -> ApiServerOptions {
        ApiServerOptions {
            master: master.map(str::to_owned),
            kubeconfig: kubeconfig.map(Into::into),
            qps: None,
            burst: 30,
            read_timeout: None,
        }
    }

    #[tokio::test]
    async fn a_bare_address_is_taken_as_http_like_go_does() {
        let config = connect_settings(&options(Some("127.0.0.1:8080"), None))
            .await
            .unwrap();
        assert_eq!(config.cluster_url.to_string(), "http://127.0.0.1:8080/");
    }

    #[tokio::test]
    async fn mistakes_name_the_flag_and_what_would_be_right() {
        for (case, options, expected) in [
            (
                "no file",
                options(None, Some("/does/not/exist")),
                "--kubeconfig: \"/does/not/exist\"",
            ),
            (
                "no host",
                options(Some("https://"), None),
                "--master: \"https://\": expected a URL",
            ),
            (
                "nothing",
                options(None, None),
                "give --kubeconfig or --master",
            ),
        ] {
            let error = connect_settings(&options)
                .await
                .err()
                .map(|e| e.to_string());
            assert!(
                error.as_deref().is_some_and(|e| e.contains(expected)),
                "{case}: {error:?}"
            );
        }
    }
    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_read_is_not_quoted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let broken = "users:\n- name: me\n  user:\n    token: s3cret-token\n   client-key: x\n";
        std::fs::write(file.path(), broken).unwrap();
        let error = connect_settings(&options(None, file.path().to_str()))
            .await
            .unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(!told.contains("s3cret"), "{told}");
        assert!(told.contains("line "), "{told}");
    }
}
