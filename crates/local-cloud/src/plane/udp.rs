//! UDP: the datagrams of one client go to one target until the client is idle.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pool::Pool;
use super::target::Lease;

/// The biggest datagram there is.
const BIGGEST: usize = 65_535;

/// Clients that one frontend serves at a time; datagrams of more are dropped.
const MOST_FLOWS: usize = 4_096;

/// The pause after the system refused to read.
const PAUSE: Duration = Duration::from_millis(50);

/// One client's datagrams and their answers.
#[derive(Debug)]
struct Flow {
    lease: Lease,
    socket: UdpSocket,
    last: Mutex<Instant>,
    /// Ends the flow before its time.
    close: CancellationToken,
}

type Flows = Arc<Mutex<HashMap<SocketAddr, Arc<Flow>>>>;

/// What all flows of a frontend share.
#[derive(Debug, Clone)]
pub(super) struct UdpFrontend {
    pub(super) socket: Arc<UdpSocket>,
    pub(super) pool: Arc<Pool>,
    pub(super) idle: Duration,
    pub(super) connections: TaskTracker,
    flows: Flows,
}

impl UdpFrontend {
    pub(super) fn new(
        socket: UdpSocket,
        pool: Arc<Pool>,
        idle: Duration,
        connections: TaskTracker,
    ) -> Self {
        Self {
            socket: Arc::new(socket),
            pool,
            idle,
            connections,
            flows: Flows::default(),
        }
    }

    /// Takes datagrams until it is stopped. Unlike connections, flows have no end to wait for.
    pub(super) async fn serve(self, stop: CancellationToken) {
        let mut buffer = vec![0; BIGGEST];
        loop {
            let received = tokio::select! {
                () = stop.cancelled() => break,
                received = self.socket.recv_from(&mut buffer) => received,
            };
            match received {
                Ok((length, client)) => {
                    if let Some(datagram) = buffer.get(..length) {
                        self.forward(client, datagram).await;
                    }
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
        for flow in self.flows().values() {
            flow.close.cancel();
        }
    }

    fn flows(&self) -> MutexGuard<'_, HashMap<SocketAddr, Arc<Flow>>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn forward(&self, client: SocketAddr, datagram: &[u8]) {
        let known = self.known(client);
        let flow = match known {
            Some(flow) => Some(flow),
            None => self.open(client).await,
        };
        let Some(flow) = flow else {
            return;
        };
        flow.touch();
        let traffic = &flow.lease.target().traffic;
        match flow.socket.send(datagram).await {
            Ok(sent) => traffic.bytes_in.add(sent),
            Err(_) => traffic.failures.one(),
        }
    }

    /// The flow that the client has, unless its target cannot be used any more.
    fn known(&self, client: SocketAddr) -> Option<Arc<Flow>> {
        let flow = self.flows().get(&client).map(Arc::clone)?;
        if self.pool.may_use(flow.lease.target())
            && self.pool.rules().admit(client.ip().to_canonical())
        {
            return Some(flow);
        }
        flow.close.cancel();
        self.flows().remove(&client);
        None
    }

    async fn open(&self, client: SocketAddr) -> Option<Arc<Flow>> {
        if !self.pool.rules().admit(client.ip().to_canonical()) {
            self.pool.denied.one();
            return None;
        }
        let room = self.flows().len() < MOST_FLOWS;
        let lease = room.then(|| self.pool.choose(client.ip().to_canonical(), &[]));
        let Some(lease) = lease.flatten() else {
            self.pool.unserved.one();
            return None;
        };
        let Ok(socket) = connected(lease.target().address).await else {
            lease.target().traffic.failures.one();
            return None;
        };
        lease.target().traffic.connections.one();
        let flow = Arc::new(Flow {
            lease,
            socket,
            last: Mutex::new(Instant::now()),
            close: CancellationToken::new(),
        });
        self.flows().insert(client, Arc::clone(&flow));
        let frontend = self.clone();
        let answering = Arc::clone(&flow);
        self.connections.spawn(async move {
            answering.answer(&frontend, client).await;
            frontend.forget(client, &answering);
        });
        Some(flow)
    }

    fn forget(&self, client: SocketAddr, flow: &Arc<Flow>) {
        let mut flows = self.flows();
        if flows
            .get(&client)
            .is_some_and(|known| Arc::ptr_eq(known, flow))
        {
            flows.remove(&client);
        }
    }
}

impl Flow {
    fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends answers back until the flow has been idle for too long.
    async fn answer(&self, frontend: &UdpFrontend, client: SocketAddr) {
        let traffic = &self.lease.target().traffic;
        let mut buffer = vec![0; BIGGEST];
        loop {
            let silent = self.last() + frontend.idle;
            let received = tokio::select! {
                () = self.close.cancelled() => return,
                () = self.lease.over() => return,
                () = sleep_until(silent) => {
                    if self.last() + frontend.idle <= Instant::now() {
                        return;
                    }
                    continue;
                }
                received = self.socket.recv(&mut buffer) => received,
            };
            let Ok(length) = received else {
                // No process listens there. The next datagram finds another target, or a new flow.
                traffic.failures.one();
                return;
            };
            self.touch();
            let answer = buffer.get(..length).unwrap_or_default();
            if let Ok(sent) = frontend.socket.send_to(answer, client).await {
                traffic.bytes_out.add(sent);
            }
        }
    }
}

/// A socket of its own for the datagrams to one target, so that its answers find their client.
pub(super) async fn connected(target: SocketAddr) -> io::Result<UdpSocket> {
    let anywhere: SocketAddr = match target {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(anywhere).await?;
    socket.connect(target).await?;
    Ok(socket)
}
