//! What Hetzner's emulator can be told besides what every emulated cloud can.

use cloudkeel_emulation::{Answer, Complaint, Steer, Steering};
use http::Method;

use super::HetznerCloud;
use super::refusal::Refusal;
use super::world::{RobotServer, ServerStatus};

/// The paths, and what each does.
pub(super) const WHEELS: [(&str, Steer<HetznerCloud>); 5] = [
    ("/control/servers/{name}", servers),
    ("/control/health/{name}", health),
    ("/control/robot/login", robot_login),
    ("/control/robot/servers", robot_servers),
    ("/control/robot/servers/{name}", robot_server),
];

fn number(steering: &Steering<'_>) -> Result<u64, Refusal> {
    let name = steering.name;
    name.parse().map_err(|_| Refusal::not_found("server", name))
}

/// `PUT` sets the status of a server at once, `DELETE` makes it vanish at once.
fn servers(cloud: &HetznerCloud, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    let id = number(steering)?;
    match *steering.method {
        Method::PUT => {
            let status: ServerStatus = steering.read()?;
            cloud.set_status(id, status)?;
        }
        Method::DELETE => cloud.destroy_server(id)?,
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}

/// `PUT` says how healthy a server (by ID) or an address is, `DELETE` lets its state speak again.
fn health(cloud: &HetznerCloud, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    match *steering.method {
        Method::PUT => {
            let status: String = steering.read()?;
            cloud.set_health(steering.name, Some(&status));
        }
        Method::DELETE => cloud.set_health(steering.name, None),
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}

/// `PUT` sets the user and the password of Robot: `["user", "password"]`.
fn robot_login(cloud: &HetznerCloud, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    match *steering.method {
        Method::PUT => {
            let (user, password): (String, String) = steering.read()?;
            cloud.set_robot_login(&user, &password);
        }
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}

/// `GET` shows the dedicated servers, `POST` adds or replaces one.
fn robot_servers(cloud: &HetznerCloud, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    match *steering.method {
        Method::GET => return Steering::shown(&cloud.robot_servers()),
        Method::POST => {
            let server: RobotServer = steering.read()?;
            cloud.add_robot_server(server);
        }
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}

/// `DELETE` removes a dedicated server.
fn robot_server(cloud: &HetznerCloud, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    let number = number(steering)?;
    match *steering.method {
        Method::DELETE => cloud.remove_robot_server(number),
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}
