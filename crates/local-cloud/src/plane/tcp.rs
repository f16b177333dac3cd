//! TCP connections: accepted, connected to a target, copied until both sides are done.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pool::Pool;
use super::proxy_header::header;
use super::splice::splice;
use super::target::Lease;

/// Connections that one frontend carries at a time; more wait outside.
const MOST_CONNECTIONS: usize = 10_000;

/// How long a target may take to answer the frontend.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How many targets are tried for one client.
const MOST_ATTEMPTS: usize = 3;

/// The pause after the system refused a connection, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Takes connections until it is stopped. Those that it took go on.
pub(super) async fn serve(
    listener: TcpListener,
    pool: Arc<Pool>,
    stop: CancellationToken,
    connections: TaskTracker,
) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let next = async {
            let seat = Arc::clone(&room).acquire_owned().await;
            (seat, listener.accept().await)
        };
        let (seat, accepted) = tokio::select! {
            () = stop.cancelled() => return,
            next = next => next,
        };
        match accepted {
            Ok((client, peer)) => {
                let pool = Arc::clone(&pool);
                connections.spawn(async move {
                    carry(client, peer, &pool).await;
                    drop(seat);
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn carry(mut client: TcpStream, peer: SocketAddr, pool: &Pool) {
    let rules = pool.rules();
    let from = peer.ip().to_canonical();
    if !rules.admit(from) {
        pool.denied.one();
        return reset(&client);
    }
    let Some((lease, mut server)) = reach(pool, from).await else {
        pool.unserved.one();
        return reset(&client);
    };
    let traffic = &lease.target().traffic;
    let carried = async {
        if let Some(version) = rules.proxy_protocol {
            let frontend = client.local_addr()?;
            server.write_all(&header(version, peer, frontend)).await?;
        }
        splice(&mut client, &mut server, traffic).await
    };
    let whole = tokio::select! {
        carried = carried => carried.is_ok(),
        () = lease.over() => false,
    };
    if !whole {
        // A clean end would look as if everything had been said.
        reset(&client);
        reset(&server);
    }
}

/// A connection to the target for this client, or to the next best one.
async fn reach(pool: &Pool, client: IpAddr) -> Option<(Lease, TcpStream)> {
    let mut tried = Vec::new();
    while tried.len() < MOST_ATTEMPTS {
        let lease = pool.choose(client, &tried)?;
        let address = lease.target().address;
        if let Ok(Ok(server)) = timeout(CONNECT_TIMEOUT, connect(address)).await {
            lease.target().traffic.connections.one();
            return Some((lease, server));
        }
        lease.target().traffic.failures.one();
        tried.push(address);
    }
    None
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let server = TcpStream::connect(address).await?;
    // On loopback a port without a listener can be connected to itself.
    if server.local_addr()? == address {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(server)
}

/// What both ends of a connection get: no waiting for more to send, and an end to silence.
pub(super) fn prepare(stream: &TcpStream) {
    // A socket that refuses these still carries bytes.
    let _ = stream.set_nodelay(true);
    let keepalive = TcpKeepalive::new().with_time(Duration::from_mins(1));
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// Ends a connection with a reset, which cannot be mistaken for a clean end.
fn reset(stream: &TcpStream) {
    // Where it cannot be set, the connection just ends.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}
