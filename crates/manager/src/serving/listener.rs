//! Opening a port.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use super::ServingError;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// Listens on an address. An unspecified one stands for all addresses of both families, as in Go.
pub(super) fn listen(
    address: IpAddr,
    port: u16,
    share_port: bool,
) -> Result<TcpListener, ServingError> {
    let asked = SocketAddr::new(address, port);
    let both_families = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let opened = if address.is_unspecified() {
        // Without IPv6, only IPv4 is left.
        open(both_families, share_port).or_else(|error| match error.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
            _ => open(asked, share_port),
        })
    } else {
        open(asked, share_port)
    };
    opened.map_err(|source| ServingError::Listen {
        address: asked,
        source,
    })
}

fn open(address: SocketAddr, share_port: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        let only_ipv6 = !address.ip().is_unspecified();
        socket.set_only_v6(only_ipv6)?;
    }
    // A restart must not wait until the kernel has forgotten the connections of the former process.
    socket.set_reuse_address(true)?;
    if share_port {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn a_taken_port_is_refused_by_name_unless_both_share_it() {
        let first = listen(LOOPBACK, 0, true).unwrap();
        let port = first.local_addr().unwrap().port();
        let error = listen(LOOPBACK, port, false).unwrap_err().to_string();
        assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
        assert!(listen(LOOPBACK, port, true).is_ok());
    }
}
