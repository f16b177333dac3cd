//! The conformance kit on OpenStack's own services, through the interposer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::{
    BuildError, CloudProvider, ConfigSource, ProviderContext, ProviderFactory as _, ProviderInput,
};
use cloudkeel_http::{Transport, TransportError};
use cloudkeel_provider_openstack::{CLUSTER_UID, OpenStackFactory, SERVICE_UID, Wiring};
use cloudkeel_testkit::conformance::interposer::Interposer;
use cloudkeel_testkit::conformance::{
    ActualState, Change, FaultInjector, Interposed, InterposedAdapter, Opening, OrNotPlayable as _,
    Report, Samples, Stop, TestCloud, run_some,
};
use http::{HeaderValue, Request, Response};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::project::{Answered, Cloud, Project, USER_PASSWORD, pause};
use crate::site::CALLS;
use crate::state::samples;

/// Two cores are busy with so many.
const CONCURRENCY: usize = 3;

/// How long a pause of the kit takes by the clock of the services.
const MOST_REAL_TIME: Duration = Duration::from_millis(500);

const GAPS: &str = "
    instances/truncated-page-is-an-error, instances/lost-page-is-an-error: OpenStack's lists do not say how long they are
    instances/list-costs-its-pages: the addresses of servers take a list of ports, too
    instances/terminated-*: a deleted server is not shown any more
";

/// The checks of load balancers that run here: one or more of each kind. Octavia takes seconds for each load balancer, so
/// the others run on the emulator, which the scenarios of this program hold to what the services do.
const BALANCER_CHECKS: &[&str] = &[
    "created",
    "applied-twice-is-one",
    "restart-changes-nothing",
    "plan-changes-nothing",
    "drift-is-repaired",
    "missing-is-not-recreated",
    "added-label-is-kept",
    "mixed-protocols",
    "targets-added",
    "targets-removed",
    "quota-is-limit-exceeded",
    "other-clusters-name-refused",
    "unowned-name-not-deleted",
    "missing-not-adopted",
    "shared-serves-both",
    "deleted-without-leaks",
    "deleted-twice",
    "never-created-is-gone",
    "create-survives-lost-answers",
    "delete-survives-outages",
];

/// The credential's checks that make no load balancer.
const CREDENTIAL_CHECKS: &[&str] = &[
    "credentials/refused-one-fails-the-check",
    "credentials/powerless-one-fails-the-check",
    "credentials/restored-one-passes-the-check",
    "credentials/cancelled-check-is-repeatable",
];

/// Runs the checks of instances, credentials and routes, and then those of load balancers.
pub(crate) async fn report() -> Report {
    let cloud: Shared = Arc::default();
    let adapter = |with_balancers: bool| {
        let cloud = Arc::clone(&cloud);
        let open = move |interposed| open(Arc::clone(&cloud), with_balancers, interposed);
        InterposedAdapter::new(
            "openstack services",
            &[GAPS],
            || Interposer::new(CALLS),
            open,
        )
        .with_concurrency(CONCURRENCY)
    };
    let (small, large) = (adapter(false), adapter(true));
    let is_small = |name: &str| {
        let groups = ["instances/", "routes/"];
        groups.iter().any(|group| name.starts_with(group)) || CREDENTIAL_CHECKS.contains(&name)
    };
    let is_balancers = |name: &str| {
        let check = name.strip_prefix("load-balancers/");
        check.is_some_and(|check| BALANCER_CHECKS.contains(&check))
    };
    // One group after the other, so that the second finds projects with servers.
    let mut report = run_some(&small, is_small).await;
    let balancers = run_some(&large, is_balancers).await;
    report.results.extend(balancers.results);
    report
}

/// The services, and the project that a credential of another account shows.
type Shared = Arc<OnceCell<(Arc<Cloud>, Project)>>;

fn open(cloud: Shared, with_balancers: bool, interposed: Interposed) -> Opening {
    Box::pin(async move {
        let direct = interposed.direct();
        let opened = cloud.get_or_try_init(|| async {
            let cloud = Box::pin(Cloud::open(&direct)).await?;
            let elsewhere = cloud.project(&direct, false).await?;
            elsewhere.add_server("theirs").await?;
            Answered::Ok((Arc::new(cloud), elsewhere))
        });
        let (cloud, elsewhere) = opened.await.or_not_playable()?;
        let project = cloud
            .project(&direct, with_balancers)
            .await
            .or_not_playable()?;
        let other = InOtherProject {
            inner: direct,
            token: HeaderValue::from_str(&elsewhere.token).or_not_playable()?,
            ids: [project.id.clone(), elsewhere.id.clone()],
        };
        Ok(Box::new(ServicesTestCloud {
            interposed: interposed.with_other_project(Arc::new(other)),
            cloud: Arc::clone(cloud),
            project: Some(project),
        }) as Box<dyn TestCloud>)
    })
}

/// Requests with the token of another project. Logins are for it, too.
struct InOtherProject {
    inner: Arc<dyn Transport>,
    token: HeaderValue,
    /// What is asked for, and what is asked for in its place.
    ids: [String; 2],
}

#[async_trait]
impl Transport for InOtherProject {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let (mut head, body) = request.into_parts();
        if let Some(token) = head.headers.get_mut("x-auth-token") {
            token.clone_from(&self.token);
        }
        let [own, other] = &self.ids;
        let body = String::from_utf8_lossy(&body).replace(own, other);
        let request = Request::from_parts(head, Bytes::from(body));
        self.inner.send(request).await
    }
}

struct ServicesTestCloud {
    interposed: Interposed,
    cloud: Arc<Cloud>,
    /// Until this is dropped.
    project: Option<Project>,
}

impl Drop for ServicesTestCloud {
    fn drop(&mut self) {
        if let Some(project) = self.project.take() {
            self.cloud.put_back(project);
        }
    }
}

impl ServicesTestCloud {
    fn project(&self) -> Result<&Project, Stop> {
        let project = self.project.as_ref();
        project.ok_or_else(|| Stop::not_playable("the project was given back"))
    }

    async fn changed(&self, change: Change<'_>) -> Result<Answered<()>, Stop> {
        let project = self.project()?;
        Ok(match change {
            Change::AddInstance(name) => project.add_server(name).await,
            Change::DestroyInstance(name) => project.destroy_server(name).await,
            Change::SwitchOff(name) => project.stop_server(name).await,
            Change::Modify(name) => project.modify_server(name).await,
            Change::AddBalancer(name, owner) => {
                let labels = owner.labels(SERVICE_UID, CLUSTER_UID);
                let tags = labels.iter().map(|(key, value)| format!("{key}={value}"));
                project.add_balancer(name, &tags.collect::<Vec<_>>()).await
            }
            Change::Damage(id) => project.damage(id).await,
            Change::AddTarget(id, name) => project.add_member(id, name).await,
            Change::AddLabel(id, (key, value)) => {
                let tag = json!(format!("{key}={value}"));
                project.change_tags(id, |tags| tags.push(tag)).await
            }
            Change::RemoveLabels(id) => project.change_tags(id, Vec::clear).await,
            Change::AddRoute(destination) => project.add_route(&destination.to_string()).await,
            Change::BalancerQuota(count) => {
                self.cloud.set_balancer_quota(project, Some(count)).await
            }
            change => return Err(change.not_playable()),
        })
    }
}

#[async_trait]
impl TestCloud for ServicesTestCloud {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let project = self.project.as_ref();
        let text = project.map(|project| self.cloud.cloud_conf(project));
        let input = ProviderInput {
            config: ConfigSource::File {
                path: "cloud.conf".into(),
                text: text.unwrap_or_default(),
            },
            ..ProviderInput::default()
        };
        let factory = OpenStackFactory::wired(Wiring::over(self.interposed.transport()));
        factory.build(input, context).await
    }

    fn interposer(&self) -> &dyn FaultInjector {
        self.interposed.interposer()
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        Box::pin(self.changed(change)).await?.or_not_playable()
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        let snapshot = self.project()?.snapshot().await;
        Ok(snapshot.or_not_playable()?.state())
    }

    fn samples(&self) -> Samples {
        samples(USER_PASSWORD)
    }

    /// Octavia's work takes its own time, which no paused clock shortens.
    async fn wait(&self, time: Duration) {
        // Without a pause it only asks more often.
        let _ = pause(time.min(MOST_REAL_TIME)).await;
        tokio::time::sleep(time).await;
    }
}
