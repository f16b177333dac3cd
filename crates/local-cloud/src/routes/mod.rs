//! Routes: in the kernel where that is allowed, else only in the cloud's table.

#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod netlink;

use std::collections::BTreeMap;
use std::net::IpAddr;

use clap::ValueEnum;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::simulated_cloud::WantedRoute;

/// The routes with our mark in an answer of the kernel, and the errors that it tells.
#[cfg(all(feature = "fuzzing", target_os = "linux"))]
pub fn read_netlink(datagram: &[u8]) -> (Vec<(IpNet, IpAddr)>, Vec<i32>) {
    let messages = message::messages(datagram);
    let routes = messages.iter().filter_map(|m| message::our_route(m.body));
    let errors = messages
        .iter()
        .filter_map(|m| message::error_number(m.body));
    (routes.collect(), errors.collect())
}

/// What is sent to the kernel to add this route.
#[cfg(all(feature = "fuzzing", target_os = "linux"))]
pub fn write_netlink(to: IpNet, via: IpAddr) -> Vec<u8> {
    message::add(to, via, 1)
}

/// Where routes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum RouteMode {
    /// In the kernel if that is allowed, else only in the table.
    #[default]
    Auto,
    /// In the kernel, or not at all.
    Kernel,
    /// Only in the table.
    Table,
}

/// Why the kernel did not take or drop a route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RouteError {
    /// There is one to the same network.
    #[error("there is a route to this network already")]
    Exists,
    /// There is none of ours.
    #[error("there is no such route")]
    Missing,
    /// We may not.
    #[error("not permitted: CAP_NET_ADMIN is needed")]
    NotPermitted,
    /// Something else.
    #[error("{0}")]
    Other(String),
}

/// Something that holds routes. Only those with our mark are ever shown or dropped.
pub(crate) trait RouteTable: Send {
    /// Whether we may change it.
    fn permitted(&mut self) -> Result<(), RouteError>;
    /// Adds a route with our mark.
    fn add(&mut self, to: IpNet, via: IpAddr) -> Result<(), RouteError>;
    /// Drops a route with our mark.
    fn remove(&mut self, to: IpNet, via: IpAddr) -> Result<(), RouteError>;
    /// The routes with our mark.
    fn ours(&mut self) -> Result<Vec<(IpNet, IpAddr)>, RouteError>;
}

/// What became of the routes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RouteStats {
    /// Whether routes are kept in the kernel.
    pub kernel: bool,
    /// Why they are not.
    pub reason: Option<String>,
    /// Routes that are not in force, and why.
    pub problems: BTreeMap<IpNet, String>,
    /// Routes that are in force, and where they lead.
    pub installed: BTreeMap<IpNet, IpAddr>,
}

/// Keeps a table in line with the world.
pub(crate) struct RouteKeeper {
    table: Option<Box<dyn RouteTable>>,
    stats: RouteStats,
}

impl RouteKeeper {
    /// One that keeps routes in the kernel as far as the mode and the system allow. On failure: why
    /// the kernel cannot be used, although it must be.
    pub(crate) fn new(mode: RouteMode) -> Result<Self, RouteError> {
        let kernel = match mode {
            RouteMode::Table => Err(RouteError::Other("--routes=table was given".to_owned())),
            RouteMode::Auto | RouteMode::Kernel => kernel(),
        };
        let usable = kernel.and_then(|mut table| table.permitted().map(|()| table));
        match usable {
            Ok(table) => Ok(Self::with(table)),
            Err(why) if mode == RouteMode::Kernel => Err(why),
            Err(why) => Ok(Self {
                table: None,
                stats: RouteStats {
                    reason: Some(why.to_string()),
                    ..RouteStats::default()
                },
            }),
        }
    }

    fn with(table: Box<dyn RouteTable>) -> Self {
        Self {
            table: Some(table),
            stats: RouteStats {
                kernel: true,
                ..RouteStats::default()
            },
        }
    }

    pub(crate) const fn stats(&self) -> &RouteStats {
        &self.stats
    }

    /// Brings the table in line.
    pub(crate) fn apply(&mut self, wanted: &[WantedRoute]) {
        let Some(table) = &mut self.table else {
            return;
        };
        let desired_targets: BTreeMap<IpNet, IpAddr> = wanted
            .iter()
            .filter_map(|wanted| Some((wanted.route.destination, wanted.via?)))
            .collect();
        let stats = &mut self.stats;
        stats.problems.clear();
        for (to, via) in stats.installed.clone() {
            if desired_targets.get(&to) == Some(&via) {
                continue;
            }
            match table.remove(to, via) {
                Ok(()) | Err(RouteError::Missing) => {
                    stats.installed.remove(&to);
                }
                Err(why) => {
                    stats.problems.insert(to, why.to_string());
                }
            }
        }
        for (to, via) in desired_targets {
            if stats.installed.contains_key(&to) {
                continue;
            }
            match add(&mut **table, to, via) {
                Ok(()) => {
                    stats.installed.insert(to, via);
                }
                Err(why) => {
                    stats.problems.insert(to, why.to_string());
                }
            }
        }
    }

    /// Forgets routes that were removed by others, such as with their interface; the next round
    /// puts them back. Returns whether there is anything to put right.
    pub(crate) fn look_again(&mut self) -> bool {
        let Some(table) = &mut self.table else {
            return false;
        };
        let before = self.stats.installed.len();
        if before > 0
            && let Ok(ours) = table.ours()
        {
            let installed = &mut self.stats.installed;
            installed.retain(|to, via| ours.contains(&(*to, *via)));
        }
        before != self.stats.installed.len() || !self.stats.problems.is_empty()
    }

    /// Leaves nothing behind.
    pub(crate) fn close(mut self) {
        self.apply(&[]);
    }
}

/// Adds a route. One of ours that a process left behind is as good; one of another owner stays theirs.
fn add(table: &mut dyn RouteTable, to: IpNet, via: IpAddr) -> Result<(), RouteError> {
    match table.add(to, via) {
        Err(RouteError::Exists) => {
            let ours = table.ours()?;
            match ours.iter().find(|(destination, _)| *destination == to) {
                Some((_, hop)) if *hop == via => Ok(()),
                Some((_, stale)) => {
                    table.remove(to, *stale)?;
                    table.add(to, via)
                }
                None => Err(RouteError::Exists),
            }
        }
        done => done,
    }
}

#[cfg(target_os = "linux")]
fn kernel() -> Result<Box<dyn RouteTable>, RouteError> {
    Ok(Box::new(netlink::Kernel::open()?))
}

#[cfg(not(target_os = "linux"))]
fn kernel() -> Result<Box<dyn RouteTable>, RouteError> {
    let why = "kernel routes are only kept on Linux".to_owned();
    Err(RouteError::Other(why))
}

#[cfg(test)]
mod tests;
