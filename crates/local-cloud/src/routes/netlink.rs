//! The kernel's routes, by netlink.

use std::io::{self, Read as _};
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use socket2::{Domain, Protocol, Socket, Type};

use super::message::{self, DONE, ERROR, NEW, error_number, messages, our_route};
use super::{RouteError, RouteTable};

/// The family of netlink sockets, and the part of it that is about routes.
const NETLINK: i32 = 16;
const ROUTE: i32 = 0;

/// The kernel answers at once, or something is wrong.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Datagrams of an answer; a table of many thousand routes has fewer.
const MOST_DATAGRAMS: usize = 10_000;

const NOT_PERMITTED: i32 = 1;
const NO_SUCH_PROCESS: i32 = 3;
const ACCESS_DENIED: i32 = 13;
const EXISTS: i32 = 17;

/// A way to the kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    socket: Socket,
    sequence: u32,
}

impl Kernel {
    pub(super) fn open() -> Result<Self, RouteError> {
        let open = || {
            let protocol = Some(Protocol::from(ROUTE));
            let socket = Socket::new(Domain::from(NETLINK), Type::RAW, protocol)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            Ok(socket)
        };
        Ok(Self {
            socket: open().map_err(failed)?,
            sequence: 0,
        })
    }

    /// Sends a request and reads its answer: the routes with our mark that it shows.
    fn ask(
        &mut self,
        request: impl Fn(u32) -> Vec<u8>,
    ) -> Result<Vec<(IpNet, IpAddr)>, RouteError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(self.sequence);
        self.socket.send(&request).map_err(failed)?;
        let mut routes = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        for _ in 0..MOST_DATAGRAMS {
            let length = (&self.socket).read(&mut buffer).map_err(failed)?;
            for message in messages(buffer.get(..length).unwrap_or_default()) {
                if message.sequence != self.sequence {
                    // A late answer to a question that was given up.
                    continue;
                }
                match message.kind {
                    NEW => routes.extend(our_route(message.body)),
                    DONE => return Ok(routes),
                    ERROR => return result(message.body).map(|()| routes),
                    _ => {}
                }
            }
        }
        Err(RouteError::Other(
            "the kernel's answer does not end".to_owned(),
        ))
    }
}

impl RouteTable for Kernel {
    fn permitted(&mut self) -> Result<(), RouteError> {
        // A network for documentation: no machine has a route to it, least of all with our protocol.
        let nowhere = IpNet::from(IpAddr::from([192, 0, 2, 255]));
        match self.remove(nowhere, [192, 0, 2, 254].into()) {
            Ok(()) | Err(RouteError::Missing) => Ok(()),
            Err(why) => Err(why),
        }
    }

    fn add(&mut self, to: IpNet, via: IpAddr) -> Result<(), RouteError> {
        self.ask(|sequence| message::add(to, via, sequence))?;
        Ok(())
    }

    fn remove(&mut self, to: IpNet, via: IpAddr) -> Result<(), RouteError> {
        self.ask(|sequence| message::remove(to, via, sequence))?;
        Ok(())
    }

    fn ours(&mut self) -> Result<Vec<(IpNet, IpAddr)>, RouteError> {
        let mut ours = self.ask(|sequence| message::list(true, sequence))?;
        ours.extend(self.ask(|sequence| message::list(false, sequence))?);
        Ok(ours)
    }
}

fn result(body: &[u8]) -> Result<(), RouteError> {
    match error_number(body) {
        Some(0) => Ok(()),
        Some(NOT_PERMITTED | ACCESS_DENIED) => Err(RouteError::NotPermitted),
        Some(NO_SUCH_PROCESS) => Err(RouteError::Missing),
        Some(EXISTS) => Err(RouteError::Exists),
        Some(number) => Err(failed(io::Error::from_raw_os_error(number))),
        None => Err(RouteError::Other(
            "the kernel's answer is cut short".to_owned(),
        )),
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what `map_err` hands over"
)]
fn failed(error: io::Error) -> RouteError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => RouteError::NotPermitted,
        _ => RouteError::Other(error.to_string()),
    }
}
