//! A way to a cloud that can be closed.

use std::net::Ipv4Addr;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A port on loopback that leads to another one while it is open.
pub(crate) struct Gate {
    port: u16,
    open: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Gate {
    /// One that is open. `url` is where it leads to.
    pub(crate) async fn to(url: &str) -> Self {
        let authority = authority_of(url).to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port on loopback");
        let port = listener.local_addr().expect("its address").port();
        let (open, is_open) = watch::channel(true);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(carry(stream, authority.clone(), is_open.clone()));
            }
        });
        Self {
            port,
            open,
            serving,
        }
    }

    /// The same address as this one, through the gate.
    pub(crate) fn through(&self, url: &str) -> String {
        url.replace(authority_of(url), &format!("127.0.0.1:{}", self.port))
    }

    /// Ends all connections and accepts none from now on, or accepts them again.
    pub(crate) fn set_open(&self, open: bool) {
        self.open.send_replace(open);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn authority_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

async fn carry(mut client: TcpStream, authority: String, mut open: watch::Receiver<bool>) {
    if !*open.borrow_and_update() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(authority).await else {
        return;
    };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _ = open.changed() => {}
    }
}
