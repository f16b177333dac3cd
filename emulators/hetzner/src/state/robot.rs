//! Dedicated servers, behind the Robot web service: another account and another API.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cloudkeel_emulation::rate_limit::Windows;
use cloudkeel_emulation::{Answer, Call};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::settings::RobotLimit;

/// A dedicated server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RobotServer {
    /// Its number.
    pub number: u64,
    /// Its name, which may be empty.
    pub name: String,
    /// Its main address.
    pub ip: Ipv4Addr,
    /// Its IPv6 network, which is a /64.
    #[serde(default)]
    pub ipv6_net: Option<Ipv6Addr>,
    /// What was bought.
    #[serde(default = "default_product")]
    pub product: String,
    /// Where it stands.
    #[serde(default = "default_dc")]
    pub dc: String,
    /// `running`, `shut off`, `not supported`.
    #[serde(default = "default_operating_status")]
    pub operating_status: String,
    /// Whether it can be reset at all.
    #[serde(default = "default_resettable")]
    pub resettable: bool,
}

fn default_product() -> String {
    "AX41-NVMe".to_owned()
}

fn default_dc() -> String {
    "FSN1-DC8".to_owned()
}

fn default_operating_status() -> String {
    "running".to_owned()
}

const fn default_resettable() -> bool {
    true
}

impl RobotServer {
    /// A running server with this number, name and address.
    pub fn new(number: u64, name: impl Into<String>, ip: Ipv4Addr) -> Self {
        Self {
            number,
            name: name.into(),
            ip,
            ipv6_net: None,
            product: default_product(),
            dc: default_dc(),
            operating_status: default_operating_status(),
            resettable: default_resettable(),
        }
    }

    fn wire(&self) -> Value {
        let subnet = self.ipv6_net.map(|net| json!({"ip": net, "mask": "64"}));
        json!({"server": {
            "server_ip": self.ip,
            "server_ipv6_net": self.ipv6_net,
            "server_number": self.number,
            "server_name": self.name,
            "product": self.product,
            "dc": self.dc,
            "traffic": "unlimited",
            "status": "ready",
            "cancelled": false,
            "paid_until": "2030-01-01",
            "ip": [self.ip],
            "subnet": subnet.into_iter().collect::<Vec<_>>(),
        }})
    }

    fn reset_wire(&self) -> Value {
        json!({"reset": {
            "server_ip": self.ip,
            "server_ipv6_net": self.ipv6_net,
            "server_number": self.number,
            "type": ["sw", "hw", "man"],
            "operating_status": self.operating_status,
        }})
    }
}

/// The account.
#[derive(Debug, Default)]
pub(crate) struct Robot {
    /// The user and the password, once they are set.
    pub(crate) login: Option<(String, String)>,
    pub(crate) servers: BTreeMap<u64, RobotServer>,
    windows: Windows<Operation>,
}

impl Robot {
    /// Whether an address is one of the account.
    pub(crate) fn owns(&self, ip: IpAddr) -> bool {
        self.servers
            .values()
            .any(|server| IpAddr::V4(server.ip) == ip)
    }

    /// Admits a call, or says why not. Refused logins do not count towards the limit.
    pub(crate) fn admit(
        &mut self,
        login: Option<&(String, String)>,
        operation: Operation,
        limit: RobotLimit,
        now: Instant,
    ) -> Result<(), Refusal> {
        if self.login.is_none() || self.login.as_ref() != login {
            return Err(Refusal::new("UNAUTHORIZED", "Unauthorized"));
        }
        let (most, length) = (limit.max_request, limit.interval);
        let charged = self.windows.charge(operation, most, length, now);
        charged.map_err(|_| Refusal {
            details: json!({"max_request": most, "interval": length.as_secs()}),
            ..Refusal::new("RATE_LIMIT_EXCEEDED", "rate limit exceeded")
        })
    }

    /// Carries out a call.
    pub(crate) fn perform(&self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let not_found = || Refusal::new("SERVER_NOT_FOUND", "No server found");
        let body = if call.operation.is_list() {
            // An account without servers is an error, not an empty list.
            if self.servers.is_empty() {
                return Err(not_found());
            }
            self.servers.values().map(RobotServer::wire).collect()
        } else {
            let number = call.resource.as_deref().and_then(|id| id.parse().ok());
            let server = number.and_then(|number: u64| self.servers.get(&number));
            let server = server.ok_or_else(not_found)?;
            match call.operation {
                Operation::RobotGetServer => server.wire(),
                _ if server.resettable => server.reset_wire(),
                _ => {
                    let message = "The server has no reset option";
                    return Err(Refusal::new("RESET_NOT_AVAILABLE", message));
                }
            }
        };
        Ok(Answer::json(StatusCode::OK, &body))
    }
}
