//! A local cloud of its own for each test, targets that say who they are, and clients.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use cloudkeel_local_cloud::simulated_cloud::wire::{
    Algorithm, Balancer, HealthCheck, Listener, NewBalancer, Protocol, Target, TargetAt,
    TargetState,
};
use cloudkeel_local_cloud::{
    Addresses, BalancerStats, Health, LocalCloud, Options, PlaneSettings, RouteMode, TargetStats,
};
use ipnet::Ipv4Net;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Longer than anything takes that works.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A local cloud with addresses that no other test has.
pub(crate) struct Lab {
    pub(crate) local: LocalCloud,
    pub(crate) options: Options,
    pub(crate) folder: TempDir,
}

/// Networks of loopback are taken one after the other; tests of one binary do not share any. Those of
/// two runs at the same time may, so the process has its say too.
fn own_network() -> Ipv4Net {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let third = NEXT.fetch_add(1, Ordering::Relaxed);
    let [.., process] = std::process::id().to_be_bytes();
    Ipv4Net::new([127, 128 + process % 120, third, 0].into(), 24).expect("a network")
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let mut options = Options {
            addresses: Addresses {
                public_v4: own_network(),
                ..Addresses::default()
            },
            routes: RouteMode::Table,
            plane: PlaneSettings {
                drain: Duration::from_secs(5),
                udp_idle: Duration::from_secs(5),
            },
            ..Options::of(folder.path().join("state.json"))
        };
        change(&mut options);
        Self::again((options, folder)).await
    }

    /// Ends the cloud. What it had is still there.
    pub(crate) async fn end(self) -> (Options, TempDir) {
        self.local.close().await;
        (self.options, self.folder)
    }

    /// Begins again where another one ended.
    pub(crate) async fn again((options, folder): (Options, TempDir)) -> Self {
        let local = LocalCloud::start(&options).await;
        Self {
            local: local.expect("the cloud starts"),
            options,
            folder,
        }
    }

    /// A balancer on some free port with these targets, all of which were checked.
    pub(crate) async fn balancer(
        &self,
        targets: &[&Backend],
        change: impl FnOnce(&mut NewBalancer),
    ) -> Front {
        let target_port = targets.first().map_or(1, |target| target.address.port());
        let mut new = NewBalancer {
            name: "front".to_owned(),
            listeners: vec![listener(8080, target_port)],
            targets: targets.iter().map(|target| target.as_target()).collect(),
            ..NewBalancer::default()
        };
        change(&mut new);
        let cloud = self.local.cloud();
        let balancer = cloud.add_balancer(new).expect("a balancer");
        cloud.settle().await.expect("the balancer works");
        let front = Front {
            id: balancer.id,
            address: SocketAddr::new(balancer.addresses[0], balancer.listeners[0].port),
        };
        self.until(&front, "all targets were checked", |targets| {
            targets.iter().all(|t| t.health != Health::Unknown)
        })
        .await;
        front
    }

    /// Changes a balancer in any way, and waits until the change is true.
    pub(crate) async fn edit(&self, front: &Front, edit: impl FnOnce(&mut Balancer)) {
        let cloud = self.local.cloud();
        cloud.edit_balancer(front.id, edit).expect("a balancer");
        cloud.settle().await.expect("the change is true");
    }

    pub(crate) async fn stats(&self, front: &Front) -> BalancerStats {
        let stats = self.local.stats().await;
        let balancers = stats.balancers.into_iter();
        let mut own = balancers.filter(|balancer| balancer.id == front.id);
        own.next().expect("the balancer has statistics")
    }

    pub(crate) async fn targets(&self, front: &Front) -> Vec<TargetStats> {
        self.stats(front).await.ports.remove(0).targets
    }

    /// Waits until the API reports the health of targets as it should be.
    pub(crate) async fn reported_health(
        &self,
        front: &Front,
        what: &str,
        good: impl Fn(&[Health]) -> bool,
    ) -> Vec<Health> {
        let reported = || -> Vec<Health> {
            let balancer = self.local.cloud().balancer(front.id);
            let health = balancer.map(|balancer| balancer.health).unwrap_or_default();
            health.iter().map(|target| target.health).collect()
        };
        let waiting = async {
            while !good(&reported()) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = timeout(DEADLINE, waiting).await;
        assert!(waited.is_ok(), "{what}: {:?}", reported());
        reported()
    }

    /// Waits until the targets are as they should be.
    pub(crate) async fn until(
        &self,
        front: &Front,
        what: &str,
        good: impl Fn(&[TargetStats]) -> bool,
    ) {
        let waiting = async {
            while !good(&self.targets(front).await) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = timeout(DEADLINE, waiting).await;
        assert!(waited.is_ok(), "{what}: {:#?}", self.targets(front).await);
    }
}

/// A port that leads to a port, checked every second.
pub(crate) fn listener(port: u16, target_port: u16) -> Listener {
    Listener {
        protocol: Protocol::Tcp,
        port,
        target_port,
        health_check: HealthCheck {
            interval_seconds: 1,
            timeout_seconds: 1,
            retries: 2,
            ..HealthCheck::default()
        },
    }
}

/// Where clients come in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Front {
    pub(crate) id: u64,
    pub(crate) address: SocketAddr,
}

impl Front {
    pub(crate) async fn connect(&self) -> TcpStream {
        let connecting = timeout(DEADLINE, TcpStream::connect(self.address));
        let connected = connecting.await.expect("an answer in time");
        connected.expect("the balancer takes the connection")
    }

    /// Which target answers; `None` if none does.
    pub(crate) async fn ask(&self) -> Option<String> {
        let mut stream = self.connect().await;
        first_line(&mut stream).await
    }

    /// Who answers a client with this address.
    pub(crate) async fn ask_from(&self, client: Ipv4Addr) -> Option<String> {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket
            .bind((client, 0).into())
            .expect("an address of loopback");
        let mut stream = socket.connect(self.address).await.ok()?;
        first_line(&mut stream).await
    }
}

/// The first line that the other side says.
pub(crate) async fn first_line(stream: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let read = timeout(DEADLINE, stream.read_u8());
        match read.await.expect("an answer in time") {
            Ok(b'\n') => return String::from_utf8(line).ok(),
            Ok(byte) => line.push(byte),
            Err(_) => return None,
        }
    }
}

/// A server that says its name, and then repeats what it hears.
pub(crate) struct Backend {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) taken: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Backend {
    /// All backends of a test share a port, each on an address of its own.
    pub(crate) async fn several<const N: usize>(names: [&'static str; N]) -> [Self; N] {
        for _ in 0..100 {
            let mut backends = Vec::new();
            let mut port = 0;
            for (name, last) in names.into_iter().zip(1..) {
                let address = SocketAddr::new(IpAddr::from([127, 0, 3, last]), port);
                let Ok(listener) = TcpListener::bind(address).await else {
                    break;
                };
                let address = listener.local_addr().expect("an address");
                port = address.port();
                backends.push(Self::on(name, listener));
            }
            if let Ok(all) = backends.try_into() {
                return all;
            }
        }
        panic!("no port is free on {N} addresses at once");
    }

    pub(crate) async fn one(name: &'static str) -> Self {
        let [one] = Self::several([name]).await;
        one
    }

    fn on(name: &'static str, listener: TcpListener) -> Self {
        let address = listener.local_addr().expect("an address");
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    if stream
                        .write_all(format!("{name}\n").as_bytes())
                        .await
                        .is_ok()
                    {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    let (mut from, mut to) = stream.split();
                    // Ends when the other side does, however that is.
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                    let _ = to.shutdown().await;
                });
            }
        });
        Self {
            name,
            address,
            taken,
            task,
        }
    }

    pub(crate) fn as_target(&self) -> Target {
        Target {
            at: self.at(),
            state: TargetState::Serving,
        }
    }

    pub(crate) const fn at(&self) -> TargetAt {
        TargetAt::Ip(self.address.ip())
    }

    /// Takes no more connections.
    pub(crate) async fn stop(&mut self) {
        self.task.abort();
        // It was aborted, which is what it says.
        let _ = (&mut self.task).await;
    }

    /// Takes connections again.
    pub(crate) async fn start_again(&mut self) {
        let listener = TcpListener::bind(self.address)
            .await
            .expect("its port is free");
        *self = Self::on(self.name, listener);
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How often each name was heard.
pub(crate) fn count<'a>(heard: &'a [String], name: &'a str) -> usize {
    heard.iter().filter(|line| *line == name).count()
}

/// Sets the algorithm.
pub(crate) fn by(algorithm: Algorithm) -> impl FnOnce(&mut NewBalancer) {
    move |new| new.algorithm = algorithm
}
