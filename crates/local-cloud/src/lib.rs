//! A small cloud behind a REST API, in two forms with the same state.
//!
//! | module | feature | what it gives |
//! |---|---|---|
//! | [`simulated_cloud`] | – | the world, its REST API and its faults; nothing outside of it moves |
//! | [`serving`] | – | a router on a socket, with limits on what a client may take |
//! | [`LocalCloud`] | `server` | the same, made real on this machine: proxies, routes, a state file |

#[cfg(feature = "server")]
mod plane;
#[cfg(feature = "server")]
mod routes;
#[cfg(feature = "server")]
mod server;
pub use cloudkeel_emulation::serving;
pub mod simulated_cloud;

#[cfg(feature = "server")]
pub use self::plane::{
    BalancerStats, FrontendStats, Health, Phase, Plane, PlaneSettings, PortStats, TargetStats,
};
#[cfg(feature = "server")]
pub use self::routes::{RouteMode, RouteStats};
#[cfg(all(feature = "fuzzing", target_os = "linux"))]
pub use self::routes::{read_netlink, write_netlink};
#[cfg(feature = "server")]
pub use self::server::{
    Addresses, BackgroundCloud, CloudStats, Contact, Files, LocalCloud, MachinesFileError,
    NodesError, Options, Running, STATS_PATH, STOP_PATH, StartError, StateError, command, main,
};
