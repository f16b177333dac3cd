//! The local provider on the simulated cloud, which counts no calls and plays no faults here: the interposer in front of it
//! does, as in front of software that is not ours. Once in process, and once over sockets, as a proxy.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::{BuildError, CloudProvider, ProviderContext};
use cloudkeel_http::{TlsSettings, Transport, TransportError};
use cloudkeel_provider_local::{Config, LocalProvider, TYPE, Wiring};
use cloudkeel_testkit::conformance::interposer::{
    Classifier, Interposer, Proxy, RealTime, in_real_time, real_time,
};
use cloudkeel_testkit::conformance::{
    ActualState, Adapter, Change, Connecting, ELSEWHERE, FaultInjector, ListShape,
    OrNotPlayable as _, Samples, SimulatedAdapter, Stop, TestCloud, Verdict, mandatory, run,
    run_some,
};
use cloudkeel_testkit::simulated_cloud::{InProcess, Permission, Served, SimulatedCloud};
use futures::FutureExt as _;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use tokio::sync::OnceCell;

/// The cloud is REST: its methods say what could change something.
const CLASSIFIER: Classifier = Classifier {
    page_param: Some("page"),
    ..Classifier::BY_METHOD
};

const SHAPE: ListShape = ListShape::Json {
    is_list: "/page",
    next: &["/page/next"],
    totals: &["/page/total"],
    last_page: &[],
};

/// Longer than a busy machine takes for an answer.
const PATIENT: Duration = Duration::from_secs(30);

/// For the one check without answers, which only reads.
const IMPATIENT: Duration = Duration::from_millis(200);
const WITHOUT_ANSWERS: &str = "instances/unknown-on-timeouts";

const DOCUMENTED: &str = "documented: a size is left alone if it is not given";

const GAPS: &[(&str, &str)] = &[
    ("load-balancers/sctp", "the local cloud has none"),
    ("load-balancers/size-taken-back", DOCUMENTED),
    ("load-balancers/annotations-taken-back", DOCUMENTED),
    ("load-balancers/node-selector", "it has none of its own"),
    (
        "load-balancers/shared-*",
        "each Service has a balancer of its own",
    ),
    ("webhooks/*", "it has none"),
    ("background/*", "it has none"),
];

/// The token of the other project.
const ELSEWHERE_TOKEN: &str = "elsewhere-token";

/// The way to the same cloud with the credential of another project.
#[derive(Clone, Default)]
struct OtherCredential(Arc<OnceLock<InProcess>>);

impl OtherCredential {
    fn lead_to(&self, cloud: &SimulatedCloud) {
        cloud.grant(ELSEWHERE_TOKEN, ELSEWHERE, Permission::ReadWrite);
        self.0.get_or_init(|| cloud.transport());
    }
}

#[async_trait]
impl Transport for OtherCredential {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let value = HeaderValue::from_str(&format!("Bearer {ELSEWHERE_TOKEN}")).unwrap();
        request.headers_mut().insert(AUTHORIZATION, value);
        self.0.get().unwrap().send(request).await
    }
}

fn interposer(other: &OtherCredential) -> Interposer {
    Interposer::new(CLASSIFIER)
        .with_list_shape(SHAPE)
        .with_other_project(Arc::new(other.clone()))
}

async fn connect(
    url: String,
    wiring: Wiring,
    context: ProviderContext,
) -> Result<Arc<dyn CloudProvider>, BuildError> {
    let config = Config::new(url, SimulatedCloud::TOKEN);
    let provider = LocalProvider::connect(&config, &context, wiring).await?;
    Ok(Arc::new(provider))
}

/// A simulated cloud behind an interposer.
struct Behind {
    cloud: Box<dyn TestCloud>,
    interposer: Interposer,
    has_real_clock: bool,
}

impl Behind {
    /// Asks the cloud while its own clock is the current one.
    fn with_its_clock<T>(&self, ask: impl FnOnce(&dyn TestCloud) -> T) -> T {
        let runtime = self.has_real_clock.then(|| real_time().unwrap());
        let _entered = runtime.as_ref().map(tokio::runtime::Handle::enter);
        ask(&*self.cloud)
    }
}

#[async_trait]
impl TestCloud for Behind {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        self.cloud.connect(context).await
    }

    fn interposer(&self) -> &dyn FaultInjector {
        &self.interposer
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        self.with_its_clock(|cloud| cloud.change(change).now_or_never())
            .unwrap()
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        self.with_its_clock(|cloud| cloud.state().now_or_never())
            .unwrap()
    }

    fn samples(&self) -> Samples {
        self.cloud.samples()
    }
}

fn simulated(
    connect: impl Fn(SimulatedCloud, ProviderContext) -> Connecting + Send + Sync + 'static,
) -> SimulatedAdapter {
    SimulatedAdapter::new("local", connect)
        .with_samples(|samples| samples.annotations = vec![(TYPE.name(), "large")])
}

struct InProcessAdapter;

#[async_trait]
impl Adapter for InProcessAdapter {
    fn name(&self) -> &'static str {
        "local"
    }

    async fn new_cloud(&self) -> Result<Box<dyn TestCloud>, Stop> {
        let other = OtherCredential::default();
        let interposer = interposer(&other);
        let through = interposer.clone();
        let adapter = simulated(move |cloud, context| {
            other.lead_to(&cloud);
            let wiring = Wiring::over(through.transport(Arc::new(cloud.transport())));
            connect(InProcess::URL.to_owned(), wiring, context).boxed()
        });
        Ok(Box::new(Behind {
            cloud: adapter.new_cloud().await?,
            interposer,
            has_real_clock: false,
        }))
    }

    fn gaps(&self) -> &[(&'static str, &'static str)] {
        GAPS
    }
}

/// A cloud on a socket, and the proxy in front of it.
type Sockets = OnceCell<(Served, Proxy)>;

async fn on_sockets(cloud: SimulatedCloud, interposer: Interposer) -> (Served, Proxy) {
    let started = in_real_time(async move {
        let served = cloud.serve_on_loopback().await.unwrap();
        let proxy = Proxy::start(&interposer, &served.url()).await.unwrap();
        (served, proxy)
    });
    started.await.unwrap()
}

/// After how long, by the real clock, the proxy is taken to play a fault without an answer.
struct ProxyAdapter(Duration);

#[async_trait]
impl Adapter for ProxyAdapter {
    fn name(&self) -> &'static str {
        "local"
    }

    async fn new_cloud(&self) -> Result<Box<dyn TestCloud>, Stop> {
        let other = OtherCredential::default();
        let interposer = interposer(&other);
        let through = interposer.clone();
        let sockets = Arc::new(Sockets::new());
        let patience = self.0;
        let adapter = simulated(move |cloud, context| {
            other.lead_to(&cloud);
            let (sockets, through) = (Arc::clone(&sockets), through.clone());
            async move {
                let open = sockets.get_or_init(|| on_sockets(cloud, through));
                let url = open.await.1.url();
                let connections = RealTime::connections(TlsSettings::default())?;
                let wiring = Wiring::over(connections.with_patience(patience));
                connect(url, wiring, context).await
            }
            .boxed()
        });
        let cloud = {
            let runtime = real_time().or_not_playable()?;
            let _entered = runtime.enter();
            adapter.new_cloud().now_or_never().unwrap()?
        };
        Ok(Box::new(Behind {
            cloud,
            interposer,
            has_real_clock: true,
        }))
    }

    fn gaps(&self) -> &[(&'static str, &'static str)] {
        GAPS
    }

    fn concurrency(&self) -> usize {
        4
    }
}

#[tokio::test(start_paused = true)]
async fn every_check_passes_behind_the_interposer_in_process() {
    let report = run(&InProcessAdapter).await;
    assert!(report.is_clean(), "{report}");
    for played in [
        "instances/other-account-proves-nothing",
        "instances/stale-reads-only-delay",
    ] {
        assert_eq!(report.verdict(played), Some(&Verdict::Passed), "{report}");
    }
}

/// Those whose faults a proxy plays: refusals, lost answers, wrong lists, no answer, another project.
fn is_played_by_the_proxy(name: &str) -> bool {
    let more = [
        "instances/empty-list-proves-nothing",
        "instances/other-account-proves-nothing",
        "instances/truncated-page-is-an-error",
        "instances/lost-page-is-an-error",
        "credentials/refused-one-fails-the-check",
        "credentials/powerless-one-fails-the-check",
        "credentials/restored-one-passes-the-check",
        "load-balancers/create-survives-lost-answers",
        "load-balancers/change-survives-outages",
        "load-balancers/cancelled-create",
        "load-balancers/failed-reads-change-nothing",
        "routes/survive-lost-answers",
    ];
    more.contains(&name) || mandatory().any(|mandatory| mandatory == name)
}

#[tokio::test(start_paused = true)]
async fn the_mandatory_checks_and_faults_pass_behind_the_proxy() {
    let is_quick = |name: &str| is_played_by_the_proxy(name) && name != WITHOUT_ANSWERS;
    let quick = run_some(&ProxyAdapter(PATIENT), is_quick).await;
    let rest = run_some(&ProxyAdapter(IMPATIENT), |name| name == WITHOUT_ANSWERS).await;
    for report in [&quick, &rest] {
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.gaps().count(), 0, "{report}");
    }
    let checks = quick.results.len() + rest.results.len();
    assert_eq!(checks, mandatory().count() + 12, "{quick}{rest}");
}
