//! A TCP proxy between a manager and the API server, whose connections can be closed or stalled.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Forwards connections to a server for as long as the test runs.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// No connection works.
    cut: bool,
    /// Connections below this number stay open, but no data passes.
    dead_below: u64,
    /// The number of the next connection.
    next: u64,
}

impl Proxy {
    /// A proxy for this server, such as `https://127.0.0.1:6443`.
    pub(crate) async fn to(server: &str) -> Self {
        let (_, server) = server.split_once("://").expect("a URL");
        let server: SocketAddr = server.trim_end_matches('/').parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port on loopback");
        let address = listener.local_addr().expect("its address");
        let (state, seen) = watch::channel(State::default());
        let numbers = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut number = 0;
                numbers.send_modify(|state| {
                    number = state.next;
                    state.next += 1;
                });
                tokio::spawn(forward(stream, server, number, seen.clone()));
            }
        });
        Self { address, state }
    }

    /// The address of the proxy.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Closes every connection, and accepts none until it is restored.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| state.cut = true);
    }

    pub(crate) fn restore(&self) {
        self.state.send_modify(|state| state.cut = false);
    }

    /// From now on no data passes on the open connections. New ones work.
    pub(crate) fn stall(&self) {
        self.state
            .send_modify(|state| state.dead_below = state.next);
    }
}

async fn forward(
    mut here: TcpStream,
    server: SocketAddr,
    number: u64,
    mut state: watch::Receiver<State>,
) {
    let Ok(mut there) = TcpStream::connect(server).await else {
        return;
    };
    let troubled = |state: &State| state.cut || number < state.dead_below;
    let is_cut = tokio::select! {
        biased;
        trouble = state.wait_for(troubled) => trouble.is_ok_and(|state| state.cut),
        _ = tokio::io::copy_bidirectional(&mut here, &mut there) => true,
    };
    if !is_cut {
        // Both ends take the connection for alive.
        let _ = state.wait_for(|state| state.cut).await;
    }
}
