//! The frame of adapters for software that is not ours: moto, vcsim, OpenStack.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_emulation::interposer::{InterposedTransport, Interposer, RealTime};
use cloudkeel_http::{TlsSettings, Transport};
use futures::future::BoxFuture;

use super::adapter::{Adapter, OrNotPlayable as _, Stop, TestCloud, declared_gaps};

/// The ways to real software, of one cloud under test.
pub struct Interposed {
    interposer: Interposer,
    connections: Arc<dyn Transport>,
}

impl Interposed {
    /// This interposer in front of these connections, which are [`RealTime`] ones in an [`InterposedAdapter`].
    pub fn new(interposer: Interposer, connections: Arc<dyn Transport>) -> Self {
        Self {
            interposer,
            connections,
        }
    }

    /// For the provider: every call is counted and may meet a fault. As in `Wiring::over(interposed.transport())`.
    pub fn transport(&self) -> InterposedTransport {
        self.interposer.transport(self.direct())
    }

    /// For the adapter itself: its calls are neither counted nor disturbed.
    pub fn direct(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.connections)
    }

    /// What [`TestCloud::interposer`] returns. Tests of the provider's own use it to count calls by
    /// operation, and to let one operation fail.
    pub const fn interposer(&self) -> &Interposer {
        &self.interposer
    }

    /// The same with a way to another account, for the check that a credential of another account proves nothing.
    #[must_use]
    pub fn with_other_project(self, way: Arc<dyn Transport>) -> Self {
        Self {
            interposer: self.interposer.with_other_project(way),
            ..self
        }
    }
}

/// A cloud that is being made.
pub type Opening = BoxFuture<'static, Result<Box<dyn TestCloud>, Stop>>;

/// The [`Adapter`] of a provider on software that is not ours. Each cloud has an interposer of its own, in front of real
/// connections that work under a paused clock: run it under `#[tokio::test(start_paused = true)]`.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use async_trait::async_trait;
/// # use cloudkeel_api::{BuildError, CloudProvider, ProviderContext};
/// use cloudkeel_testkit::conformance::interposer::{Classifier, Interposer, Rule};
/// use cloudkeel_testkit::conformance::*;
///
/// const EC2: Classifier = Classifier {
///     rules: &[Rule::Param { param: "Action", reads: &["Describe"] }],
///     page_param: None,
/// };
///
/// struct Moto(Interposed);
///
/// #[async_trait]
/// impl TestCloud for Moto {
///     async fn connect(&self, context: ProviderContext) -> Result<Arc<dyn CloudProvider>, BuildError> {
///         let transport = self.0.transport();
/// #       drop((context, transport));
///         todo!("Aws::connect(&config, &context, Wiring::over(transport))")
///     }
///     fn interposer(&self) -> &dyn FaultInjector {
///         self.0.interposer()
///     }
///     async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
///         todo!("by a client of the cloud's own API over self.0.direct()")
///     }
///     async fn state(&self) -> Result<ActualState, Stop> {
///         todo!("the same")
///     }
/// }
///
/// let adapter = InterposedAdapter::new("aws", &[], || Interposer::new(EC2), |interposed| {
///     Box::pin(async { Ok(Box::new(Moto(interposed)) as Box<dyn TestCloud>) })
/// });
/// ```
pub struct InterposedAdapter {
    name: &'static str,
    gaps: Vec<(&'static str, &'static str)>,
    interposer: fn() -> Interposer,
    open: Box<dyn Fn(Interposed) -> Opening + Send + Sync>,
    tls: TlsSettings,
    timeout: Duration,
    concurrency: usize,
}

impl InterposedAdapter {
    /// For the provider of this name, with its [gaps](Adapter::gaps), the interposer that knows the cloud's API, and how a
    /// new cloud is made: an account, a region or a project with nothing in it.
    pub fn new(
        name: &'static str,
        gaps: &[&'static str],
        interposer: fn() -> Interposer,
        open: impl Fn(Interposed) -> Opening + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            gaps: declared_gaps(gaps),
            interposer,
            open: Box::new(open),
            tls: TlsSettings::default(),
            timeout: Duration::from_hours(12),
            concurrency: 1,
        }
    }

    /// With these TLS settings towards the software.
    #[must_use]
    pub fn with_tls(mut self, tls: TlsSettings) -> Self {
        self.tls = tls;
        self
    }

    /// With so many checks at once, where each cloud is one of its own.
    #[must_use]
    pub const fn with_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// With another time after which a check is taken to hang.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

#[async_trait]
impl Adapter for InterposedAdapter {
    fn name(&self) -> &str {
        self.name
    }

    async fn new_cloud(&self) -> Result<Box<dyn TestCloud>, Stop> {
        let connections = RealTime::connections(self.tls.clone()).or_not_playable()?;
        (self.open)(Interposed::new((self.interposer)(), Arc::new(connections))).await
    }

    fn gaps(&self) -> &[(&'static str, &'static str)] {
        &self.gaps
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn concurrency(&self) -> usize {
        self.concurrency
    }
}
