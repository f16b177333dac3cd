//! Control operations of its own, and the APIs as a router and on a socket.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use cloudkeel_emulation::{
    self as emulation, ControlOperation, ControlRequest, InProcess, api_router, control_router,
    shown,
};
use tokio::net::TcpListener;

use crate::{HetznerCloud, Refusal};

/// What Hetzner's emulator can be controlled by besides what every emulated cloud has.
const CONTROL: [ControlOperation<HetznerCloud>; 6] = [
    ("PUT /control/servers/{name}", |cloud, request| {
        cloud.set_status(number(request)?, request.read()?)?;
        Ok(None)
    }),
    ("DELETE /control/servers/{name}", |cloud, request| {
        cloud.destroy_server(number(request)?)?;
        Ok(None)
    }),
    ("PUT /control/robot/login", |cloud, request| {
        let (user, password): (String, String) = request.read()?;
        cloud.set_robot_login(&user, &password);
        Ok(None)
    }),
    ("GET /control/robot/servers", |cloud, _| {
        shown(&cloud.robot_servers())
    }),
    ("POST /control/robot/servers", |cloud, request| {
        cloud.add_robot_server(request.read()?);
        Ok(None)
    }),
    ("DELETE /control/robot/servers/{name}", |cloud, request| {
        cloud.remove_robot_server(number(request)?);
        Ok(None)
    }),
];

fn number(request: &ControlRequest<'_>) -> Result<u64, Refusal> {
    let name = request.name;
    name.parse().map_err(|_| Refusal::not_found("server", name))
}

impl HetznerCloud {
    /// The Cloud API below `/v1`, Robot below `/robot`, and `/control` for both.
    pub fn router(&self) -> Router {
        api_router(self).merge(control_router(self, &CONTROL))
    }

    /// A transport that reaches it without sockets.
    pub fn transport(&self) -> InProcess {
        InProcess::new(self.router())
    }

    /// Serves everything on a listener until what is returned is dropped.
    pub fn serve(&self, listener: TcpListener) -> io::Result<Served> {
        emulation::Served::start(listener, self.router()).map(Served)
    }

    /// Serves everything on a free port of the loopback interface.
    pub async fn serve_on_loopback(&self) -> io::Result<Served> {
        let served = emulation::Served::on_loopback(self.router()).await;
        served.map(Served)
    }
}

/// An emulator on a socket. It stops listening when this is dropped.
#[derive(Debug)]
pub struct Served(emulation::Served);

impl Served {
    /// The address on which it listens.
    pub const fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// The Cloud API: what `HCLOUD_ENDPOINT` is set to.
    pub fn api_url(&self) -> String {
        format!("{}/v1", self.0.url())
    }

    /// The Robot web service.
    pub fn robot_url(&self) -> String {
        format!("{}/robot", self.0.url())
    }
}
