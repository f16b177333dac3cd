//! Dedicated servers, behind the Robot web service: another account, other habits.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::operation::Operation;
use super::super::refusal::Refusal;
use super::super::settings::RobotLimit;

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
pub(in super::super) struct Robot {
    /// The user and the password, once somebody set them.
    pub(in super::super) login: Option<(String, String)>,
    pub(in super::super) servers: BTreeMap<u64, RobotServer>,
    windows: BTreeMap<Operation, (Instant, u32)>,
}

impl Robot {
    /// Whether an address is one of the account.
    pub(in super::super) fn owns(&self, ip: IpAddr) -> bool {
        self.servers
            .values()
            .any(|server| IpAddr::V4(server.ip) == ip)
    }

    /// Lets a call in, or says why not. Refused logins do not count towards the limit.
    pub(in super::super) fn admit(
        &mut self,
        login: Option<&(String, String)>,
        operation: Operation,
        limit: RobotLimit,
        now: Instant,
    ) -> Result<(), Refusal> {
        if self.login.is_none() || self.login.as_ref() != login {
            return Err(Refusal::new("UNAUTHORIZED", "Unauthorized"));
        }
        let (begun, calls) = self.windows.entry(operation).or_insert((now, 0));
        if now.saturating_duration_since(*begun) >= limit.interval {
            (*begun, *calls) = (now, 0);
        }
        if *calls >= limit.max_request {
            let mut refusal = Refusal::new("RATE_LIMIT_EXCEEDED", "rate limit exceeded");
            refusal.details = json!({
                "max_request": limit.max_request,
                "interval": limit.interval.as_secs(),
            });
            return Err(refusal);
        }
        *calls += 1;
        Ok(())
    }

    /// Carries out a call.
    pub(in super::super) fn perform(
        &mut self,
        operation: Operation,
        number: &str,
        form: &str,
    ) -> Result<Value, Refusal> {
        match operation {
            // An account without servers is an error, not an empty list.
            Operation::RobotListServers if self.servers.is_empty() => Err(server_not_found()),
            Operation::RobotListServers => {
                Ok(self.servers.values().map(RobotServer::wire).collect())
            }
            Operation::RobotGetServer => self.find(number).map(|server| server.wire()),
            Operation::RobotListResets => {
                let servers = self.servers.values().filter(|server| server.resettable);
                Ok(servers.map(RobotServer::reset_wire).collect())
            }
            _ => {
                let server = self.find(number)?;
                if !server.resettable {
                    let message = "The server has no reset option";
                    return Err(Refusal::new("RESET_NOT_AVAILABLE", message));
                }
                match operation {
                    Operation::RobotReset => server.reset(form),
                    _ => Ok(server.reset_wire()),
                }
            }
        }
    }

    fn find(&mut self, number: &str) -> Result<&mut RobotServer, Refusal> {
        let number = number.parse().ok();
        number
            .and_then(|number: u64| self.servers.get_mut(&number))
            .ok_or_else(server_not_found)
    }
}

impl RobotServer {
    fn reset(&mut self, form: &str) -> Result<Value, Refusal> {
        let kind = form.split('&').find_map(|pair| pair.strip_prefix("type="));
        if let Some(kind @ ("sw" | "hw" | "man")) = kind {
            "running".clone_into(&mut self.operating_status);
            let mut answer = self.reset_wire();
            if let Some(reset) = answer.get_mut("reset").and_then(Value::as_object_mut) {
                reset.remove("operating_status");
                reset.insert("type".to_owned(), json!(kind));
            }
            Ok(answer)
        } else {
            let mut refusal = Refusal::new("INVALID_INPUT", "invalid input");
            refusal.details = json!({"missing": null, "invalid": ["type"]});
            Err(refusal)
        }
    }
}

fn server_not_found() -> Refusal {
    Refusal::new("SERVER_NOT_FOUND", "No server found")
}
