//! The settings for reaching the API server.

use std::ffi::OsStr;

use cloudkeel_controllers::runtime::ErrorText;
use cloudkeel_http::{ProxySettings, Redactor};
use http::uri::Scheme;
use kube::Config;
use kube::config::{AuthInfo, InClusterError};
use tracing::warn;

use super::ApiServerConfig;
use super::kubeconfig::Found;
use crate::log_messages::CREDENTIALS_IN_CLEAR_TEXT;
use crate::options::ApiServerOptions;

/// Why the API server cannot be reached with these settings.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig is missing or wrong.
    #[error("{origin}: {path:?}: {reason}")]
    Kubeconfig {
        /// The flag or variable that names it.
        origin: &'static str,
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// The address of the API server is invalid.
    #[error("--master: {value:?}: expected a URL such as `https://10.0.0.1:6443`: {reason}")]
    Master {
        /// What was given.
        value: String,
        /// Why.
        reason: String,
    },
    /// Not in a Pod, and no kubeconfig.
    #[error(
        "no API server configured: give --kubeconfig or --master, set $KUBECONFIG, or run in a Pod with a \
         ServiceAccount ({})", no_pod(.0)
    )]
    NotInCluster(InClusterError),
    /// The proxy cannot be used.
    #[error("cannot reach the API server: {0}")]
    Proxy(String),
    /// The client could not be built.
    #[error("cannot build a client for the API server: {}", ErrorText(.0))]
    Client(kube::Error),
}

/// The file of `--kubeconfig`, else the address alone, else the files of `$KUBECONFIG` if its value is given, else
/// the ServiceAccount of the Pod. `--master` overrides the address in the file; credentials that only a variable
/// names are never sent to it.
pub async fn connect_settings(
    options: &ApiServerOptions,
    variable: Option<&OsStr>,
) -> Result<ApiServerConfig, ConnectError> {
    let (mut config, proxy_url) = match (&options.kubeconfig, &options.master) {
        (Some(path), _) => Found::by_flag(path).read().await?,
        (None, Some(master)) => (Config::new(parse_master(master, &Scheme::HTTP)?), None),
        (None, None) => match variable.and_then(Found::by_variable) {
            Some(kubeconfig) => kubeconfig.read().await?,
            None => (in_cluster()?, None),
        },
    };
    if let Some(master) = &options.master {
        config.cluster_url = parse_master(master, &default_scheme(&config))?;
        warn_of_clear_text(&config);
    }
    let proxies = match proxy_url {
        Some(url) => ProxySettings::always("proxy-url", &url),
        None => ProxySettings::from_env(),
    };
    // The proxy is chosen here; see `kubeconfig.rs`.
    config.proxy_url = None;
    config.read_timeout = options.read_timeout;
    // An idle connection does not time out: time counts from the request on.
    config.reset_reader_on_write = true;
    Ok(ApiServerConfig {
        config,
        proxies: proxies.map_err(|error| ConnectError::Proxy(error.to_string()))?,
    })
}

/// What is missing to be a Pod, in clearer words than the library's.
fn no_pod(error: &InClusterError) -> String {
    match error {
        InClusterError::ReadEnvironmentVariable(_) => {
            "$KUBERNETES_SERVICE_HOST is not set here".to_owned()
        }
        other => other.to_string(),
    }
}

fn in_cluster() -> Result<Config, ConnectError> {
    Config::incluster_env().map_err(ConnectError::NotInCluster)
}

/// The scheme of an address that has none. As in Go, it is `https` if there are TLS settings; and, unlike in Go,
/// also if there is a credential to protect.
fn default_scheme(config: &Config) -> Scheme {
    let speaks_tls = config.root_cert.is_some()
        || config.tls_server_name.is_some()
        || config.accept_invalid_certs;
    if speaks_tls || has_credential(&config.auth_info) {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    }
}

fn has_credential(auth: &AuthInfo) -> bool {
    let texts = [&auth.username, &auth.token_file, &auth.client_certificate];
    texts.into_iter().any(Option::is_some)
        || auth.token.is_some()
        || auth.password.is_some()
        || auth.client_certificate_data.is_some()
        || auth.auth_provider.is_some()
        || auth.exec.is_some()
}

fn warn_of_clear_text(config: &Config) {
    if config.cluster_url.scheme() == Some(&Scheme::HTTP) && has_credential(&config.auth_info) {
        let address = Redactor::default().url(&config.cluster_url.to_string());
        warn!(address, "{CREDENTIALS_IN_CLEAR_TEXT}");
    }
}

fn parse_master(master: &str, default_scheme: &Scheme) -> Result<http::Uri, ConnectError> {
    let wrong = |reason: String| ConnectError::Master {
        value: Redactor::default().url(master),
        reason,
    };
    let with_scheme = if master.contains("://") {
        master.to_owned()
    } else {
        format!("{default_scheme}://{master}")
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

    fn kubeconfig(cluster: &str, user: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: c, user: u}}}}]\n\
             clusters:\n- name: other\n  cluster: {{server: \"https://x\", proxy-url: \"http://x\"}}\n\
             - name: c\n  cluster: {{server: \"https://10.0.0.1:6443\"{cluster}}}\n\
             users: [{{name: u, user: {{{user}}}}}]\n"
        );
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[tokio::test]
    async fn an_address_without_a_scheme_sends_no_credential_in_clear_text() {
        let token = kubeconfig("", "token: s3cret");
        let insecure = kubeconfig(", insecure-skip-tls-verify: true", "");
        let bare = kubeconfig("", "");
        for (case, master, file, expected) in [
            (
                "nothing to protect",
                "127.0.0.1:8080",
                None,
                "http://127.0.0.1:8080/",
            ),
            (
                "nothing to protect in a file",
                "h:1",
                Some(&bare),
                "http://h:1/",
            ),
            (
                "a token",
                "10.0.0.2:6443",
                Some(&token),
                "https://10.0.0.2:6443/",
            ),
            (
                "TLS without a credential",
                "h:6443",
                Some(&insecure),
                "https://h:6443/",
            ),
            ("as it is said", "http://h:1", Some(&token), "http://h:1/"),
        ] {
            let path = file.and_then(|file| file.path().to_str());
            let server = connect_settings(&options(Some(master), path), None)
                .await
                .unwrap();
            assert_eq!(server.config.cluster_url.to_string(), expected, "{case}");
        }
    }

    #[tokio::test]
    async fn the_proxy_of_the_kubeconfig_is_the_current_clusters_own() {
        let none = kubeconfig("", "token: t");
        let server = connect_settings(&options(None, none.path().to_str()), None).await;
        let server = server.unwrap();
        assert_eq!(
            format!("{:?}", server.proxies),
            format!("{:?}", ProxySettings::default())
        );
        assert!(
            server.config.proxy_url.is_none(),
            "{:?}",
            server.config.proxy_url
        );
        let proxied = kubeconfig(", proxy-url: \"socks5://joe:hunter2@p:1080\"", "token: t");
        let server = connect_settings(&options(None, proxied.path().to_str()), None).await;
        let shown = format!("{:?}", server.unwrap().proxies);
        assert!(shown.contains("Socks5 proxy at http://p:1080/"), "{shown}");
        let wrong = kubeconfig(", proxy-url: \"ftp://joe:hunter2@p\"", "token: t");
        let error = connect_settings(&options(None, wrong.path().to_str()), None).await;
        let error = error.err().unwrap().to_string();
        assert!(
            error.contains("proxy-url=ftp://[redacted]@p: expected"),
            "{error}"
        );
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
            let error = connect_settings(&options, None)
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
        let error = connect_settings(&options(None, file.path().to_str()), None)
            .await
            .err()
            .unwrap();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cret"), "{text}");
        assert!(text.contains("line "), "{text}");
    }

    #[tokio::test]
    async fn the_variable_stands_between_the_flag_and_the_pod() {
        let (first, second) = (kubeconfig("", "token: t"), kubeconfig("", "token: t"));
        let text = std::fs::read_to_string(second.path()).unwrap();
        std::fs::write(second.path(), text.replace("10.0.0.1", "10.0.0.2")).unwrap();
        let missing = std::path::Path::new("/does/not/exist");
        let joined = |paths: &[&std::path::Path]| std::env::join_paths(paths).unwrap();
        let flag = second.path().to_str();
        let master = options(Some("10.0.0.3:80"), None);
        let server = connect_settings(&master, Some(first.path().as_os_str()))
            .await
            .unwrap();
        assert_eq!(server.config.cluster_url.to_string(), "http://10.0.0.3:80/");
        assert!(
            !has_credential(&server.config.auth_info),
            "none for an address of the command line"
        );
        for (case, flag, variable, expected) in [
            ("alone", None, joined(&[first.path()]), Some("10.0.0.1")),
            (
                "the first of two",
                None,
                joined(&[second.path(), first.path()]),
                Some("10.0.0.2"),
            ),
            (
                "one that is not there",
                None,
                joined(&[missing, first.path()]),
                Some("10.0.0.1"),
            ),
            (
                "the flag wins",
                flag,
                joined(&[first.path()]),
                Some("10.0.0.2"),
            ),
            ("none that is there", None, joined(&[missing]), None),
            ("empty", None, "".into(), None),
        ] {
            let server = connect_settings(&options(None, flag), Some(&variable)).await;
            let host = server
                .ok()
                .and_then(|it| it.config.cluster_url.host().map(str::to_owned));
            assert_eq!(host.as_deref(), expected, "{case}");
        }
        std::fs::write(first.path(), "clusters: 1").unwrap();
        let variable = joined(&[first.path()]);
        let error = connect_settings(&options(None, None), Some(&variable)).await;
        let error = error.err().unwrap().to_string();
        assert!(error.starts_with("$KUBECONFIG: \""), "{error}");
    }
}
