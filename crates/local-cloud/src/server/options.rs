//! How a local cloud is started, and why it may not.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use cloudkeel_provider_local::wire::Features;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::lock::{Contact, Files};
use super::machines::NodesError;
use super::state_file::StateError;
use crate::plane::PlaneSettings;
use crate::routes::RouteMode;
use crate::simulated_cloud::{Pools, Refusal, Settings};

/// How a local cloud is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its state, and what belongs to it.
    pub files: Files,
    /// Where the API listens; where it was before if it is left out.
    pub listen: Option<SocketAddr>,
    /// The token; beside the state if it is left out.
    pub token_file: Option<PathBuf>,
    /// Machines from a file.
    pub machines: Option<PathBuf>,
    /// Machines from the Nodes of a cluster.
    pub machines_from_nodes: bool,
    /// The cluster.
    pub kubeconfig: Option<PathBuf>,
    /// Where balancers get their addresses from.
    pub addresses: Addresses,
    /// The region of everything.
    pub region: String,
    /// How the proxies behave.
    pub plane: PlaneSettings,
    /// Where routes are kept.
    pub routes: RouteMode,
    /// Whether faults and settings can be steered by the API.
    pub control: bool,
}

impl Options {
    /// A cloud with this state, and everything else as usual.
    pub fn of(state: PathBuf) -> Self {
        Self {
            files: Files::of(state),
            listen: None,
            token_file: None,
            machines: None,
            machines_from_nodes: false,
            kubeconfig: None,
            addresses: Addresses::default(),
            region: "local".to_owned(),
            plane: PlaneSettings::default(),
            routes: RouteMode::Auto,
            control: false,
        }
    }

    /// How the world behaves.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            pools: self.addresses.pools(),
            features: Features {
                // Without a pool of its own there is one address of the kind at most.
                dual_stack: self.addresses.public_v6.is_some(),
                every_node: self.machines_from_nodes,
                ..Features::default()
            },
            ..Settings::default()
        }
    }
}

/// Where balancers get their addresses from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// For public balancers.
    pub public_v4: Ipv4Net,
    /// For public balancers; the loopback address alone if it is left out.
    pub public_v6: Option<Ipv6Net>,
    /// For internal balancers; the same as the public ones if it is left out.
    pub internal_v4: Option<Ipv4Net>,
    /// For internal balancers; the same as the public ones if it is left out.
    pub internal_v6: Option<Ipv6Net>,
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            public_v4: Ipv4Net::new_assert([127, 0, 10, 0].into(), 24),
            public_v6: None,
            internal_v4: None,
            internal_v6: None,
        }
    }
}

impl Addresses {
    /// Reads pools as people give them: at most one of each family. On failure: what is wrong.
    pub fn read(public: &[IpNet], internal: &[IpNet]) -> Result<Self, String> {
        let (public_v4, public_v6) = families("--addresses", public)?;
        let (internal_v4, internal_v6) = families("--internal-addresses", internal)?;
        Ok(Self {
            public_v4: public_v4.unwrap_or(Self::default().public_v4),
            public_v6,
            internal_v4,
            internal_v6,
        })
    }

    /// The networks of public addresses.
    pub(super) fn public(&self) -> Vec<IpNet> {
        let v6 = self.public_v6.map(IpNet::V6);
        std::iter::once(IpNet::V4(self.public_v4))
            .chain(v6)
            .collect()
    }

    fn pools(&self) -> Pools {
        let loopback = Ipv6Net::from(Ipv6Addr::LOCALHOST);
        let public_v6 = self.public_v6.unwrap_or(loopback);
        Pools {
            public_v4: self.public_v4,
            public_v6,
            internal_v4: self.internal_v4.unwrap_or(self.public_v4),
            internal_v6: self.internal_v6.unwrap_or(public_v6),
        }
    }
}

fn families(flag: &str, nets: &[IpNet]) -> Result<(Option<Ipv4Net>, Option<Ipv6Net>), String> {
    let (mut v4, mut v6) = (None, None);
    for net in nets {
        let (network, given): (IpAddr, IpNet) = (net.network(), net.trunc());
        if *net != given {
            let length = net.prefix_len();
            return Err(format!(
                "{flag}: {net}: expected a network, such as {network}/{length}"
            ));
        }
        let again = match given {
            IpNet::V4(net) => v4.replace(net).is_some(),
            IpNet::V6(net) => v6.replace(net).is_some(),
        };
        if again {
            return Err(format!(
                "{flag}: {net}: expected one network of each family"
            ));
        }
    }
    Ok((v4, v6))
}

/// Why a local cloud did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another process runs it.
    #[error("{0}")]
    Running(String),
    /// The state cannot be taken up.
    #[error(transparent)]
    StateFile(#[from] StateError),
    /// The state cannot be kept.
    #[error("{0}")]
    State(Refusal),
    /// The files beside the state cannot be used.
    #[error("the lock beside the state file cannot be used: {0}")]
    Lock(io::Error),
    /// The token cannot be read or made.
    #[error("--token-file: {path:?}: {source}")]
    Token {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of machines is wrong.
    #[error(transparent)]
    MachinesFile(#[from] super::machines::MachinesFileError),
    /// The machines are wrong.
    #[error("--machines: {0}")]
    Machines(Refusal),
    /// Nodes cannot be followed.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// Health checks cannot speak TLS.
    #[error("TLS: {0}")]
    Tls(rustls::Error),
    /// Routes cannot be kept in the kernel, although they must be.
    #[error("--routes=kernel: {why}; use --routes=auto or --routes=table to go without")]
    Routes {
        /// Why not.
        why: String,
    },
    /// The API has no place.
    #[error("--listen: cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

impl StartError {
    pub(super) fn running(files: &Files, contact: Option<&Contact>) -> Self {
        let state = files.state.display();
        let who = contact.map_or_else(
            || "another process".to_owned(),
            |contact| format!("process {} at {}", contact.pid, contact.url),
        );
        Self::Running(format!(
            "the state {state} is in use by {who}: stop that one with `cloudkeel local-cloud stop \
             --state {state}`, or give another --state"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(public: &[&str], internal: &[&str]) -> Result<Addresses, String> {
        let nets = |texts: &[&str]| -> Vec<IpNet> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        Addresses::read(&nets(public), &nets(internal))
    }

    #[test]
    fn what_is_not_given_follows_what_is() {
        let pools = read(&["192.168.9.0/28"], &[]).unwrap().pools();
        assert_eq!(pools.internal_v4.to_string(), "192.168.9.0/28");
        assert_eq!(pools.public_v6.to_string(), "::1/128");
        let pools = read(&["fd00::/120"], &["10.1.0.0/24"]).unwrap().pools();
        assert_eq!(pools.public_v4.to_string(), "127.0.10.0/24");
        assert_eq!(pools.internal_v4.to_string(), "10.1.0.0/24");
        assert_eq!(pools.internal_v6.to_string(), "fd00::/120");
    }

    #[test]
    fn what_makes_no_sense_is_reported() {
        for (case, public, internal, expected) in [
            (
                "host bits",
                &["10.0.0.1/24"][..],
                &[][..],
                "such as 10.0.0.0/24",
            ),
            (
                "two",
                &["10.0.0.0/24", "10.0.1.0/24"],
                &[],
                "one network of each family",
            ),
            (
                "inside",
                &[],
                &["10.0.0.1/24"],
                "--internal-addresses: 10.0.0.1/24",
            ),
        ] {
            let error = read(public, internal).unwrap_err();
            assert!(error.contains(expected), "{case}: {error}");
        }
    }
}
