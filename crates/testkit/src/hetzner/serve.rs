//! The APIs as a router, and on a socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use cloudkeel_emulation::{self as emulation, InProcess, api_router, control_router};
use tokio::net::TcpListener;

use super::{HetznerCloud, control};

impl HetznerCloud {
    /// The Cloud API below `/v1`, Robot below `/robot`, and `/control` to steer both.
    pub fn router(&self) -> Router {
        api_router(self).merge(control_router(self, &control::WHEELS))
    }

    /// A way to reach it without sockets.
    pub fn transport(&self) -> InProcess {
        InProcess::new(self.router())
    }

    /// Serves everything on a listener until what is returned is dropped.
    pub fn serve(&self, listener: TcpListener) -> io::Result<Served> {
        emulation::Served::start(listener, self.router()).map(Served)
    }

    /// Serves everything on a free port of this machine.
    pub async fn serve_on_loopback(&self) -> io::Result<Served> {
        self.serve(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)
    }
}

/// An emulator on a socket. It stops listening when this is dropped.
#[derive(Debug)]
pub struct Served(emulation::Served);

impl Served {
    /// Where it listens.
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
