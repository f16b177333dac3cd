//! A local cloud in the background, for a manager without an endpoint. It outlives the manager,
//! so that traffic goes on without one; the next manager finds it again by its lock.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, ProviderContext, Secret};
use cloudkeel_provider_local::{Launched, Launcher};
use tokio::time::{Instant, sleep};
use tracing::info;

use super::args::state_folder;
use super::lock::{Contact, Files, Running};

const OPERATION: &str = "start local cloud";

/// How long a cloud may take until it says where it is.
const START_TIMEOUT: Duration = Duration::from_secs(30);

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How much of the log is shown when it did not start.
const LAST_LINES: usize = 5;

/// Starts local clouds in the background, or finds those that run.
#[derive(Debug, Clone, Default)]
pub struct BackgroundCloud {
    kubeconfig: Option<PathBuf>,
}

impl BackgroundCloud {
    /// For a program with these arguments: the cloud looks at the same cluster.
    pub fn beside(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut arguments = arguments.into_iter();
        let mut kubeconfig = None;
        while let Some(argument) = arguments.next() {
            let flag = argument.trim_start_matches('-');
            if flag == "kubeconfig" {
                kubeconfig = arguments.next();
            } else if let Some(value) = flag.strip_prefix("kubeconfig=") {
                kubeconfig = Some(value.to_owned());
            }
        }
        Self {
            kubeconfig: kubeconfig.map(PathBuf::from),
        }
    }

    fn start(&self, files: &Files, cluster: Option<&str>) -> io::Result<Child> {
        let log = files.log();
        if let Some(folder) = log.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("local-cloud")
            .arg("--state")
            .arg(&files.state)
            .arg("--addresses")
            .arg(addresses(cluster))
            .arg("--machines-from-nodes");
        if let Some(kubeconfig) = &self.kubeconfig {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // A Ctrl-C is meant for the manager.
            .process_group(0)
            .spawn()
    }
}

#[async_trait]
impl Launcher for BackgroundCloud {
    async fn launch(&self, context: &ProviderContext) -> Result<Launched, CloudError> {
        let cluster = context.cluster.uid.as_deref();
        let files = files(cluster)?;
        let running = files.running().map_err(|error| failed(&files, &error))?;
        let child = match running {
            Running::No => Some(
                self.start(&files, cluster)
                    .map_err(|error| failed(&files, &error))?,
            ),
            Running::Starting | Running::Yes(_) => None,
        };
        let was_there = child.is_none();
        let contact = find(&files, child).await?;
        let (url, pid) = (&contact.url, contact.pid);
        let state = files.state.display();
        info!(url, pid, %state, was_there, "using the local cloud of this machine");
        let token =
            std::fs::read_to_string(&contact.token_file).map_err(|error| failed(&files, &error))?;
        Ok(Launched {
            token: Secret::new(token.trim()),
            endpoint: contact.url,
        })
    }
}

/// Waits until the address of the cloud is published.
async fn find(files: &Files, mut child: Option<Child>) -> Result<Contact, CloudError> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let running = files.running().map_err(|error| failed(files, &error))?;
        if let Running::Yes(contact) = running {
            if let Some(mut child) = child {
                // Until init adopts it, this process has to reap it.
                std::thread::spawn(move || child.wait());
            }
            return Ok(contact);
        }
        let ended = match &mut child {
            // If another process holds the lock, another manager's cloud was faster.
            Some(child) => child.try_wait().ok().flatten().is_some() && running == Running::No,
            None => running == Running::No,
        };
        if ended || Instant::now() >= deadline {
            let why = format!("it did not start: {}", last_words(&files.log()));
            return Err(unavailable(files, &why));
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The files of a cluster's cloud: two clusters on one machine have two.
fn files(cluster: Option<&str>) -> Result<Files, CloudError> {
    let folder = state_folder().map_err(|why| CloudError::invalid(OPERATION, why))?;
    let name = match cluster {
        Some(uid) => {
            let letters = uid.chars().filter(char::is_ascii_alphanumeric);
            format!("local-cloud-{}.json", letters.take(12).collect::<String>())
        }
        None => "local-cloud.json".to_owned(),
    };
    Ok(Files::of(folder.join(name)))
}

/// Addresses of loopback for this cluster, so that two clusters do not fight over a port. The same in every
/// version of this program (FNV-1a), for those that balancers have outlive it.
fn addresses(cluster: Option<&str>) -> String {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let hash = cluster.unwrap_or_default().bytes().fold(BASIS, mix);
    let [a, b, ..] = hash.to_be_bytes();
    format!("127.{}.{b}.0/24", 64 + a % 64)
}

fn last_words(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().rev().take(LAST_LINES).collect();
    if lines.is_empty() {
        return "it said nothing".to_owned();
    }
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}

fn failed(files: &Files, error: &io::Error) -> CloudError {
    unavailable(files, &error.to_string())
}

fn unavailable(files: &Files, why: &str) -> CloudError {
    let message = format!("{}: {why}", files.state.display());
    CloudError::new(OPERATION, ErrorKind::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_of_the_manager_is_found_among_its_arguments() {
        for (line, expected) in [
            ("cloudkeel --kubeconfig=/a", Some("/a")),
            ("cloudkeel --kubeconfig /a -v=2", Some("/a")),
            ("cloudkeel -kubeconfig=/a --kubeconfig=/b", Some("/b")),
            ("cloudkeel --authentication-kubeconfig=/a", None),
            ("cloudkeel --kubeconfig", None),
        ] {
            let words = line.split_whitespace().map(str::to_owned);
            let found = BackgroundCloud::beside(words).kubeconfig;
            assert_eq!(found, expected.map(PathBuf::from), "{line}");
        }
    }

    #[test]
    fn a_cluster_has_addresses_on_loopback_of_its_own() {
        let one = addresses(Some("one"));
        assert_eq!(one, "127.90.8.0/24", "as in every version before");
        assert_ne!(one, addresses(Some("two")));
        let net: ipnet::Ipv4Net = one.parse().unwrap();
        assert!(net.network().is_loopback());
    }
}
