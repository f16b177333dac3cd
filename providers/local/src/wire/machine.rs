//! Machines on the wire.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Unique over all projects, never used twice.
    pub id: u64,
    /// Its name; several machines may share one.
    pub name: String,
    /// The hardware UUID, as the firmware shows it.
    pub uuid: String,
    /// Whether it runs.
    pub state: MachineState,
    /// Its size.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its zone.
    pub zone: String,
    /// Its region.
    pub region: String,
    /// The name it gives itself, if that differs from `name`.
    #[serde(default)]
    pub hostname: Option<String>,
    /// Its addresses, the primary ones first.
    pub addresses: Vec<MachineAddress>,
    /// Labels of users.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl Machine {
    /// Whether it still exists.
    pub fn is_alive(&self) -> bool {
        self.state != MachineState::Deleted
    }

    /// Whether one of its addresses is this one.
    pub fn has_address(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|address| address.ip == ip)
    }
}

/// The life of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineState {
    /// It runs.
    Running,
    /// It boots.
    Starting,
    /// It goes down.
    Stopping,
    /// It is switched off.
    Off,
    /// It was deleted and is still shown for a while. There is no return.
    Deleted,
}

/// Where an address can be reached from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressScope {
    /// From inside the project's network.
    Private,
    /// From everywhere.
    Public,
}

/// One address of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineAddress {
    /// Where it can be reached from.
    pub scope: AddressScope,
    /// The address.
    pub ip: IpAddr,
}

impl MachineAddress {
    /// An address inside the project's network.
    pub const fn private(ip: IpAddr) -> Self {
        Self {
            scope: AddressScope::Private,
            ip,
        }
    }

    /// A public address.
    pub const fn public(ip: IpAddr) -> Self {
        Self {
            scope: AddressScope::Public,
            ip,
        }
    }
}

/// What is asked for when a machine is made. What is left out, the cloud chooses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMachine {
    /// Its name.
    pub name: String,
    /// Its size.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The hardware UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The name it gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Its addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<MachineAddress>>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}
