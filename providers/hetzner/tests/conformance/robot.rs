//! The same cloud with dedicated servers as its instances.

use std::net::Ipv6Addr;
use std::time::Duration;

use cloudkeel_api::NodeAddress;
use cloudkeel_emulator_hetzner::{HetznerCloud, RobotServer};
use cloudkeel_testkit::conformance::{
    ActualInstance, Change, OtherInstances, Stop, TestCloud, with_instances,
};

use crate::cloud::{HetznerTestCloud, first_of};

/// User and password.
const LOGIN: (&str, &str) = ("robot-user", "robot-password");

struct DedicatedServers(HetznerCloud);

pub(crate) fn new() -> Result<Box<dyn TestCloud>, Stop> {
    let mut inner = HetznerTestCloud::new()?;
    inner.cloud.remove_robot_server(7);
    inner.cloud.set_robot_login(LOGIN.0, LOGIN.1);
    inner.config.robot.enabled = true;
    // Robot is listed every few minutes; the checks want to know what happens then.
    inner.config.robot.cache_timeout = Duration::ZERO;
    inner.config.robot.login = Some((LOGIN.0.to_owned(), LOGIN.1.into()));
    let dedicated = DedicatedServers(inner.cloud.clone());
    Ok(Box::new(with_instances(inner, dedicated)))
}

fn new_server(name: &str, count: usize) -> RobotServer {
    let last = u8::try_from(count + 1).unwrap_or(u8::MAX);
    let mut server = RobotServer::new(320 + u64::from(last), name, [192, 0, 2, last].into());
    server.ipv6_net = Some(Ipv6Addr::new(0x2a01, 0x4f8, 1, last.into(), 0, 0, 0, 0));
    server
}

fn actual(server: &RobotServer) -> ActualInstance {
    let ipv6 = server.ipv6_net.map(first_of).into_iter();
    let addresses = ipv6.chain([server.ip.into()]).map(NodeAddress::external);
    let id = format!("hrobot://{}", server.number);
    ActualInstance::new(id, &server.name, addresses)
        .of_type(&server.product)
        .at(server.dc.to_lowercase(), "fsn1")
        .labelled("instance.hetzner.cloud/provided-by", "robot")
}

impl OtherInstances for DedicatedServers {
    fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        let servers = self.0.robot_servers();
        let named = |name: &str| {
            let found = servers.iter().find(|server| server.name == name);
            found.cloned().ok_or_else(|| change.not_playable())
        };
        let mut changed = match change {
            Change::AddInstance(name) => new_server(name, servers.len()),
            Change::DestroyInstance(name) => {
                self.0.remove_robot_server(named(name)?.number);
                return Ok(());
            }
            Change::SwitchOff(name) | Change::Modify(name) => named(name)?,
            _ => return Err(change.not_playable()),
        };
        match change {
            Change::SwitchOff(_) => "shut off".clone_into(&mut changed.operating_status),
            Change::Modify(_) => changed.ip = [192, 0, 2, 99].into(),
            _ => {}
        }
        self.0.add_robot_server(changed);
        Ok(())
    }

    fn instances(&self) -> Vec<ActualInstance> {
        self.0.robot_servers().iter().map(actual).collect()
    }

    fn secrets(&self) -> Vec<String> {
        vec![LOGIN.1.to_owned()]
    }
}
