//! Runs `cloudkeel plan --orphans` and `--teardown`: finds what can be removed, asks, and removes it.

use std::collections::BTreeSet;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerRef, Clock, CloudError, ClusterIdentity, DesiredState, ErrorKind, Match, NodeFacts,
    OwnedResource, Registry, ServiceRef, Shared,
};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::ErrorText;
use cloudkeel_controllers::service::owner::owner_of_service;
use cloudkeel_controllers::service::spec::balancer_ref_of;
use cloudkeel_controllers::view::{NodeView, ServiceView, SlimNode, View as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use kube::{Api, Client};

use super::controllers::ServiceScope;
use super::invocation::Start;
use super::preflight::Environment;
use super::prepare::{ManagerDeps, Prepared, Writes};
use crate::commands::plan::{PlanArgs, SOMETHING_TO_DO, removals_text, result_text};
use crate::commands::{OutputFormat, Screen};
use crate::options::ElectionOptions;
use crate::orphans::{
    Found, Group, Removal, RemovalParts, RemovalResult, RemovalTarget, ServiceCheck, orphaned,
    remove_all, routes_of_cluster, without_service,
};

/// Shows what can be removed, and removes it if that is asked for.
pub(super) async fn run(
    args: &PlanArgs,
    start: Start,
    registry: &Registry,
    environment: Environment,
) -> Result<ExitCode, String> {
    let Environment { env, kubeconfig } = environment;
    let kubeconfig = kubeconfig.as_deref();
    let connecting = ManagerDeps::of_process(registry, &start, kubeconfig, Writes::CloudsOnly);
    let (deps, _reports) = connecting.await.map_err(text)?;
    let client = deps.factory.unfenced("plan").map_err(text)?;
    let preparing = limited(args, Box::pin(Prepared::with(&deps, env))).await?;
    let prepared = preparing.map_err(text)?;
    let command = Command {
        args,
        client,
        clouds: &prepared.clouds,
        scope: prepared.service_scope(),
        start: &start,
        clock: deps.clock.as_ref(),
    };
    let ended = Box::pin(command.run()).await;
    prepared.close().await;
    ended
}

/// Bounds the time of a part of the work. A person who is asked has any time.
async fn limited<T>(args: &PlanArgs, work: impl Future<Output = T>) -> Result<T, String> {
    let limited = tokio::time::timeout(args.timeout, work).await;
    limited.map_err(|_| {
        let limit = args.timeout;
        format!("not done within {limit:?}; run it again, or give it more time with --timeout")
    })
}

/// What is shown for an error.
#[expect(clippy::needless_pass_by_value, reason = "it is for map_err")]
fn text(error: impl ToString) -> String {
    error.to_string()
}

struct Command<'a> {
    args: &'a PlanArgs,
    client: Client,
    clouds: &'a [Arc<Cloud>],
    scope: &'a ServiceScope,
    start: &'a Start,
    clock: &'a dyn Clock,
}

impl Command<'_> {
    async fn run(&self) -> Result<ExitCode, String> {
        let found = limited(self.args, self.find()).await??;
        if !self.args.apply {
            self.print(&found, None)?;
            return self.code_of(&found);
        }
        if self.args.output == OutputFormat::Text {
            self.print(&found, None)?;
        }
        if !found.failures.is_empty() {
            return Err("nothing was removed: not everything could be listed".to_owned());
        }
        if found.removals.is_empty() {
            if self.args.output == OutputFormat::Json {
                self.print(&found, Some(&[]))?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        self.confirm(found.removals.len())?;
        let results = limited(self.args, self.remove(&found)).await?;
        if self.args.output == OutputFormat::Json {
            self.print(&found, Some(&results))?;
        }
        let failed = results
            .iter()
            .filter(|result| result.error.is_some())
            .count();
        if failed > 0 {
            return Err(format!("{failed} of {} were not removed", results.len()));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn find(&self) -> Result<Found, String> {
        let services = self.services().await?;
        if !self.args.teardown {
            return Ok(self.orphans(&services).await);
        }
        self.check_teardown().await?;
        self.everything(&services).await
    }

    fn code_of(&self, found: &Found) -> Result<ExitCode, String> {
        if !found.failures.is_empty() {
            return Err("not everything could be listed".to_owned());
        }
        let has_any = !found.removals.is_empty();
        Ok(if self.args.exit_code && has_any {
            ExitCode::from(SOMETHING_TO_DO)
        } else {
            ExitCode::SUCCESS
        })
    }

    /// All Services. A cluster without any is no cluster: one that cannot be seen would make everything orphaned.
    async fn services(&self) -> Result<Vec<ServiceView>, String> {
        let services: Api<Service> = Api::all(self.client.clone());
        let listed = services.list(&ListParams::default()).await;
        let listed =
            listed.map_err(|error| format!("cannot list Services: {}", ErrorText(&error)))?;
        let views: Vec<_> = listed.items.iter().map(ServiceView::of).collect();
        let api_server =
            |it: &ServiceView| it.service.namespace == "default" && it.service.name == "kubernetes";
        if !views.iter().any(api_server) {
            return Err(
                "the API server does not list Service default/kubernetes, which every cluster has: is this the right \
                 cluster, and may this account list all Services?"
                    .to_owned(),
            );
        }
        Ok(views)
    }

    /// What no Service has.
    async fn orphans(&self, services: &[ServiceView]) -> Found {
        let existing: BTreeSet<_> = services.iter().map(|it| it.service.clone()).collect();
        let mut found = Found::default();
        for cloud in self.clouds {
            for group in self.owned_groups(cloud, &existing, &mut found).await {
                self.add_group(cloud, group, &mut found).await;
            }
            add_unproven(cloud, services, &mut found).await;
        }
        found
    }

    /// Everything of this cluster: what its Services have, what is left of others, and its routes.
    async fn everything(&self, services: &[ServiceView]) -> Result<Found, String> {
        let nodes = self.nodes().await?;
        let mut found = Found::default();
        for cloud in self.clouds {
            let served = services.iter().filter(|service| {
                let owner = owner_of_service(service, &self.scope.classes);
                owner.is_some_and(|owner| owner.cloud == cloud.name)
            });
            let served: Vec<_> = served.collect();
            for service in &served {
                let balancer_ref = balancer_ref_of(service, &self.scope.cluster);
                self.add(cloud, balancer_ref, &mut found).await;
            }
            // What a Service has in a cloud that does not serve it is found by its labels.
            let served = served
                .iter()
                .map(|service| service.service.clone())
                .collect();
            for group in self.owned_groups(cloud, &served, &mut found).await {
                self.add_group(cloud, group, &mut found).await;
            }
            add_unproven(cloud, services, &mut found).await;
            self.add_routes(cloud, &nodes, &mut found).await;
        }
        Ok(found)
    }

    async fn owned_groups(
        &self,
        cloud: &Cloud,
        known: &BTreeSet<ServiceRef>,
        found: &mut Found,
    ) -> Vec<Group> {
        let provider = cloud.provider();
        let Some(balancers) = provider.load_balancers() else {
            return Vec::new();
        };
        match balancers.owned().await {
            Ok(owned) => orphaned(&owned, known),
            Err(error) => {
                note_failure(cloud, "load balancers", &error, found);
                Vec::new()
            }
        }
    }

    async fn add_group(&self, cloud: &Cloud, group: Group, found: &mut Found) {
        let names = group.resources.iter();
        let names = names.map(|it| format!("{} {} ({})", it.kind.as_str(), it.id, it.name));
        let names: Vec<_> = names.collect();
        let Some(service) = group.service else {
            let (cloud, names) = (&cloud.name, names.join(", "));
            let why = "its labels name no Service, so remove it by hand";
            found.kept.push(format!("cloud {cloud}: {names}: {why}"));
            return;
        };
        let before = found.removals.len() + found.failures.len();
        let balancer_ref = BalancerRef::of(self.scope.cluster.clone(), service);
        self.add(cloud, balancer_ref, found).await;
        if found.removals.len() + found.failures.len() == before {
            let (cloud, names) = (&cloud.name, names.join(", "));
            let why = "it is kept on purpose, or another cluster has it as well";
            found.kept.push(format!("cloud {cloud}: {names}: {why}"));
        }
    }

    /// All that a Service has in a cloud, if it has anything.
    async fn add(&self, cloud: &Cloud, balancer_ref: BalancerRef, found: &mut Found) {
        let provider = cloud.provider();
        let Some(balancers) = provider.load_balancers() else {
            return;
        };
        match balancers.plan(DesiredState::Absent(&balancer_ref)).await {
            Ok(plan) if plan.is_empty() => {}
            Ok(plan) => found.removals.push(Removal {
                cloud: cloud.name.clone(),
                target: RemovalTarget::Service(Box::new(balancer_ref)),
                steps: plan.steps,
            }),
            Err(error) if error.kind() == ErrorKind::ImplementedElsewhere => {}
            Err(error) if error.kind() == ErrorKind::NotOurs => {
                found.kept.push(format!("cloud {}: {error}", cloud.name));
            }
            Err(error) => note_failure(cloud, "load balancers", &error, found),
        }
    }

    async fn add_routes(&self, cloud: &Cloud, nodes: &[Shared<NodeFacts>], found: &mut Found) {
        let provider = cloud.provider();
        let Some(routes) = provider.routes() else {
            return;
        };
        let cidrs = &self.start.options.generic.cluster_cidrs;
        if cidrs.is_empty() {
            let why = "which routes are this cluster's is not known without --cluster-cidr";
            found
                .not_listed
                .push(format!("cloud {}: routes: {why}", cloud.name));
            return;
        }
        match routes.list(nodes).await {
            Ok(listed) => {
                let ours = routes_of_cluster(listed, cidrs).into_iter();
                let ours = ours.map(|route| Removal::of_route(&cloud.name, route));
                found.removals.extend(ours);
            }
            Err(error) => note_failure(cloud, "routes", &error, found),
        }
    }

    async fn nodes(&self) -> Result<Vec<Shared<NodeFacts>>, String> {
        let nodes: Api<SlimNode> = Api::all(self.client.clone());
        let listed = nodes.list(&ListParams::default()).await;
        let listed = listed.map_err(|error| format!("cannot list Nodes: {}", ErrorText(&error)))?;
        Ok(listed
            .items
            .iter()
            .map(|node| NodeView::of(node).facts)
            .collect())
    }

    /// Refuses to tear down a cluster that is in use, or clouds that are another cluster's.
    async fn check_teardown(&self) -> Result<(), String> {
        let uid = self.cluster().uid.as_deref().ok_or(
            "the cluster's UID is not known, so what belongs to it is not either: allow `get` on the namespace \
             kube-system",
        )?;
        if let Some(expected) = &self.args.cluster_uid
            && expected != uid
        {
            return Err(format!(
                "--cluster-uid: {expected:?}: expected {uid:?}, the UID of this cluster: check --kubeconfig"
            ));
        }
        if self.args.force || !self.args.apply {
            return Ok(());
        }
        self.check_lease().await?;
        let nodes = self.nodes().await?;
        for cloud in self.clouds {
            check_cloud(cloud, &nodes).await?;
        }
        Ok(())
    }

    const fn cluster(&self) -> &ClusterIdentity {
        &self.scope.cluster
    }

    /// An active manager would make again what is removed.
    async fn check_lease(&self) -> Result<(), String> {
        let ElectionOptions {
            namespace, name, ..
        } = &self.start.options.election;
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        let lease = leases.get_opt(name).await;
        let lease = lease.map_err(|error| {
            format!(
                "cannot read lease {namespace}/{name}: {}",
                ErrorText(&error)
            )
        })?;
        let spec = lease.and_then(|lease| lease.spec).unwrap_or_default();
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        let (Some(holder), Some(renewed)) = (holder, spec.renew_time) else {
            return Ok(());
        };
        let age = self.clock.now().duration_since(renewed.0);
        let seconds = i64::from(spec.lease_duration_seconds.unwrap_or_default());
        if age.as_secs() > seconds {
            return Ok(());
        }
        Err(format!(
            "{holder} holds lease {namespace}/{name} and would make again what is removed: stop the manager first \
             (or --force)"
        ))
    }

    /// Asks the person at the terminal, unless the command line has said yes.
    fn confirm(&self, count: usize) -> Result<(), String> {
        let uid = self.cluster().uid.clone().unwrap_or_default();
        let expected = if self.args.teardown {
            uid.as_str()
        } else {
            "yes"
        };
        if self.args.yes {
            if self.args.teardown && self.args.cluster_uid.is_none() {
                return Err(format!(
                    "--yes: --teardown expects --cluster-uid={uid} with it, so that a script cannot meet another cluster"
                ));
            }
            return Ok(());
        }
        let mut errors = std::io::stderr();
        let question = if self.args.teardown {
            format!(
                "This removes all {count} cloud resources of cluster {uid}. Type its UID to go on: "
            )
        } else {
            format!("Remove {count}? Type yes to go on: ")
        };
        let _ = write!(errors, "{question}");
        let _ = errors.flush();
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        if read.is_ok() && answer.trim() == expected {
            return Ok(());
        }
        Err("not confirmed, nothing was removed".to_owned())
    }

    async fn remove(&self, found: &Found) -> Vec<RemovalResult> {
        let fresh = FreshServices(self.client.clone());
        let colours = Screen::detect();
        let is_json = self.args.output == OutputFormat::Json;
        let on_result = |result: &RemovalResult| {
            let line = result_text(result, colours);
            // With JSON the results are printed at the end.
            let _ = if is_json && std::io::stderr().is_terminal() {
                write!(std::io::stderr(), "{line}")
            } else if is_json {
                Ok(())
            } else {
                write!(std::io::stdout(), "{line}")
            };
        };
        let parts = RemovalParts {
            clouds: self.clouds,
            is_wanted: (!self.args.teardown).then_some(&fresh as &dyn ServiceCheck),
            on_result: &on_result,
        };
        remove_all(&found.removals, &parts).await
    }

    fn print(&self, found: &Found, results: Option<&[RemovalResult]>) -> Result<(), String> {
        let mut out = std::io::stdout().lock();
        let written = match self.args.output {
            OutputFormat::Json => {
                let json = serde_json::to_string_pretty(&found.report(results)).map_err(text)?;
                writeln!(out, "{json}")
            }
            OutputFormat::Text => write!(out, "{}", removals_text(found, Screen::detect())),
        };
        written.map_err(|error| format!("cannot write: {error}"))
    }
}

/// Whether the instances of this cluster are in this cloud, if any should be.
async fn check_cloud(cloud: &Cloud, nodes: &[Shared<NodeFacts>]) -> Result<(), String> {
    let provider = cloud.provider();
    let Some(instances) = provider.instances() else {
        return Ok(());
    };
    let is_ours = |node: &&Shared<NodeFacts>| {
        let id = node.provider_id.as_ref();
        id.is_some_and(|id| provider.recognize(id) == cloudkeel_api::Recognition::Ours)
    };
    let ours: Vec<_> = nodes.iter().filter(is_ours).collect();
    if ours.is_empty() {
        return Ok(());
    }
    let list = instances.list().await.map_err(text)?;
    if ours
        .iter()
        .any(|node| matches!(instances.identify(node, &list), Match::One(_)))
    {
        return Ok(());
    }
    Err(format!(
        "cloud {} shows none of the {} instances that this cluster's Nodes name: is this the right credential? (or \
         --force)",
        cloud.name,
        ours.len()
    ))
}

/// Lists what may be another cluster's, and says what is missing for a proof.
async fn add_unproven(cloud: &Cloud, services: &[ServiceView], found: &mut Found) {
    let provider = cloud.provider();
    let Some(balancers) = provider.load_balancers() else {
        return;
    };
    let unproven = match balancers.unproven().await {
        Ok(unproven) => unproven,
        Err(error) => return note_failure(cloud, "what is not proven to be ours", &error, found),
    };
    let services: Vec<_> = services.iter().map(|it| it.service.clone()).collect();
    let kept = without_service(unproven, &services).into_iter().map(|it| {
        let OwnedResource { kind, id, name, .. } = &it.resource;
        let (cloud, kind, why) = (&cloud.name, kind.as_str(), &it.why);
        format!("cloud {cloud}: {kind} {id} ({name}): {why}")
    });
    found.kept.extend(kept);
}

fn note_failure(cloud: &Cloud, what: &str, error: &CloudError, found: &mut Found) {
    let line = format!("cloud {}: {what}: {error}", cloud.name);
    if error.kind() == ErrorKind::Unsupported {
        found.not_listed.push(line);
    } else {
        found.failures.push(line);
    }
}

/// Asks the API server, not a cache.
struct FreshServices(Client);

#[async_trait]
impl ServiceCheck for FreshServices {
    async fn exists(&self, service: &ServiceRef) -> Result<bool, String> {
        let services: Api<Service> = Api::namespaced(self.0.clone(), &service.namespace);
        let only = ListParams::default().fields(&format!("metadata.name={}", service.name));
        let found = services.list(&only).await;
        let found = found
            .map_err(|error| format!("cannot read Service {service}: {}", ErrorText(&error)))?;
        let mut found = found.items.iter().map(|it| ServiceView::of(it).service);
        Ok(found.any(|found| service.is(&found)))
    }
}
