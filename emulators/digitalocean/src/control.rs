//! The API as a router and on a socket.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use cloudkeel_emulation::{self as emulation, InProcess, api_router, control_router};
use tokio::net::TcpListener;

use crate::DigitalOceanCloud;

impl DigitalOceanCloud {
    /// The API below `/v2`, the metadata service below `/metadata`, and `/control`.
    pub fn router(&self) -> Router {
        api_router(self).merge(control_router(self, &[]))
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

    /// The API: what `DO_OVERRIDE_URL` is set to.
    pub fn api_url(&self) -> String {
        format!("{}/", self.0.url())
    }
}
