//! One port of one balancer: its listeners, one per address, and the pool of targets.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use cloudkeel_provider_local::wire::{Protocol, ReportedHealth};
use tokio::net::{TcpListener, UdpSocket};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::pool::{DesiredTarget, Phase, Pool};
use super::probe::Prober;
use super::rules::Rules;
use super::udp::UdpFrontend;
use super::{Tools, health, tcp};

/// A port that is being served.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) pool: Arc<Pool>,
    pub(super) frontends: BTreeMap<IpAddr, Frontend>,
    _checks: DropGuard,
}

/// A place where clients come in.
#[derive(Debug)]
pub(super) enum Frontend {
    /// It is open until this is dropped.
    Open(#[expect(dead_code, reason = "closes the frontend when it is dropped")] DropGuard),
    /// It could not be opened.
    Failed(String),
}

impl Port {
    /// A port without frontends.
    pub(super) fn new(rules: Rules, tools: &Tools, prober: &Arc<Prober>) -> Self {
        let pool = Pool::new(rules, tools.settings.drain);
        let stop = CancellationToken::new();
        let prober = Arc::clone(prober);
        tokio::spawn(health::watch(Arc::clone(&pool), prober, stop.clone()));
        Self {
            pool,
            frontends: BTreeMap::new(),
            _checks: stop.drop_guard(),
        }
    }

    /// The health of the targets that get new connections.
    pub(super) fn health(&self, number: u16) -> Vec<ReportedHealth> {
        let members = self.pool.members().into_iter();
        members
            .filter(|(_, phase)| *phase == Phase::Serving)
            .map(|(target, _)| ReportedHealth {
                at: target.at,
                port: number,
                health: target.health(),
            })
            .collect()
    }

    /// Takes new rules and targets; opens frontends that are missing, and closes those that are not
    /// wanted any more.
    pub(super) async fn update(
        &mut self,
        rules: Rules,
        targets: &[DesiredTarget],
        frontends: (Protocol, u16, &[IpAddr]),
        tools: &Tools,
    ) {
        let (protocol, port, addresses) = frontends;
        self.pool.update(rules, targets);
        self.frontends
            .retain(|address, _| addresses.contains(address));
        for address in addresses {
            if matches!(self.frontends.get(address), Some(Frontend::Open(_))) {
                continue;
            }
            let at = SocketAddr::new(*address, port);
            let frontend = match self.open(protocol, at, tools).await {
                Ok(stop) => Frontend::Open(stop),
                Err(error) => Frontend::Failed(format!(
                    "{protocol} {port}: cannot listen on {at}: {}",
                    in_words(&error)
                )),
            };
            self.frontends.insert(*address, frontend);
        }
    }

    async fn open(
        &self,
        protocol: Protocol,
        at: SocketAddr,
        tools: &Tools,
    ) -> io::Result<DropGuard> {
        let stop = CancellationToken::new();
        let pool = Arc::clone(&self.pool);
        let connections = tools.connections.clone();
        match protocol {
            Protocol::Tcp => {
                let listener = TcpListener::bind(at).await?;
                let serving = tcp::serve(listener, pool, stop.clone(), connections.clone());
                tokio::spawn(serving);
            }
            Protocol::Udp => {
                let socket = UdpSocket::bind(at).await?;
                let idle = tools.settings.udp_idle;
                let frontend = UdpFrontend::new(socket, pool, idle, connections.clone());
                tokio::spawn(frontend.serve(stop.clone()));
            }
            Protocol::Sctp => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(stop.drop_guard())
    }

    /// What keeps clients out.
    pub(super) fn problems(&self) -> impl Iterator<Item = String> {
        self.frontends
            .values()
            .filter_map(|frontend| match frontend {
                Frontend::Open(_) => None,
                Frontend::Failed(why) => Some(why.clone()),
            })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.pool.retire();
    }
}

/// The system's error, and what the operator can do about it.
fn in_words(error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need root, CAP_NET_BIND_SERVICE or a lower \
             net.ipv4.ip_unprivileged_port_start"
        }
        io::ErrorKind::AddrNotAvailable => {
            "; give --addresses that this machine has, or add the address to an interface"
        }
        io::ErrorKind::AddrInUse => "; another program has this port on this address",
        _ => "",
    };
    format!("{error}{hint}")
}
