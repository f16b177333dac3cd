//! The same cloud with dedicated servers as its instances.

use std::net::Ipv6Addr;

use cloudkeel_api::NodeAddress;
use cloudkeel_emulator_hetzner::{HetznerCloud, InProcess, RobotServer};
use cloudkeel_testkit::conformance::{
    ActualInstance, ActualState, Change, EmulatedCloud, Samples, Stop,
};
use serde_json::json;

use crate::cloud::{emulated, factory, first_of};

const USER: &str = "robot-user";
const PASSWORD: &str = "robot-password";

pub(crate) fn new() -> Result<EmulatedCloud<HetznerCloud>, Stop> {
    // Robot is listed every few minutes; the checks want to know what happens then.
    let (cloud, config) = emulated(&json!({
        "enabled": true, "endpoint": format!("{}/robot", InProcess::URL), "cacheTimeout": "1ns",
        "user": USER, "password": PASSWORD,
    }))?;
    cloud.set_robot_login(USER, PASSWORD);
    Ok(EmulatedCloud {
        factory: factory(&cloud),
        cloud,
        config,
        change,
        state,
        samples: Samples {
            secrets: vec![HetznerCloud::TOKEN.to_owned(), PASSWORD.to_owned()],
            ..Samples::default()
        },
    })
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

fn change(cloud: &HetznerCloud, change: Change<'_>, id: &str) -> Result<(), Stop> {
    let (servers, number) = (cloud.robot_servers(), id.parse().unwrap_or_default());
    let edit = |edit: fn(&mut RobotServer)| {
        let mut changed = servers.clone();
        changed.retain(|it| it.number == number);
        for mut server in changed {
            edit(&mut server);
            cloud.add_robot_server(server);
        }
    };
    match change {
        Change::AddInstance(name) => cloud.add_robot_server(new_server(name, servers.len())),
        Change::DestroyInstance(_) => cloud.remove_robot_server(number),
        Change::SwitchOff(_) => edit(|it| "shut off".clone_into(&mut it.operating_status)),
        Change::Modify(_) => edit(|it| it.ip = [192, 0, 2, 99].into()),
        _ => return Err(change.not_playable()),
    }
    Ok(())
}

fn state(cloud: &HetznerCloud) -> ActualState {
    ActualState {
        instances: cloud.robot_servers().iter().map(actual).collect(),
        ..ActualState::default()
    }
}
