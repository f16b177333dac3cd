//! Load balancers: observe, plan, execute.
use crate::*;

/// The labels that say whose balancer it is: the UID of a Service decides.
const OWNER: OwnerLabels = OwnerLabels {
    service_uid: "cloudkeel.dev/service-uid",
    cluster_uid: "cloudkeel.dev/cluster-uid",
    service: ServiceLabel::Joined("cloudkeel.dev/service"),
    others: &[],
};

/// Which balancer is the Service's, and which machines there are.
pub(crate) type Observed = (Classified<Balancer>, BTreeSet<u64>);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Create(Balancer),
    Update(Balancer, Balancer),
    Delete(u64),
}

impl Step for Change {}
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(new) => write!(f, "create balancer {}", new.name),
            Self::Update(have, _) => write!(f, "update balancer {}", have.id),
            Self::Delete(id) => write!(f, "delete balancer {id}"),
        }
    }
}

/// A balancer, changed to what the Service asks for. Nodes wait until they have a machine.
fn wanted(mut balancer: Balancer, spec: &LoadBalancerSpec, machines: &BTreeSet<u64>) -> Balancer {
    balancer.labels = OWNER.added(&balancer.labels, &spec.balancer_ref, None);
    let port = |listener: &Listener| Some((listener.port, listener.node_port?));
    balancer.ports = spec.listeners.iter().filter_map(port).collect();
    let target = |target: &Target| number(target.node.provider_id.as_ref()?);
    let targets = spec.targets.values().filter_map(target);
    balancer.targets = targets.filter(|id| machines.contains(id)).collect();
    balancer
}

#[async_trait]
impl LoadBalancerDriver for Account {
    type Observed = Observed;
    type Step = Change;
    async fn observe(&self, desired: DesiredState<'_>) -> Result<Observed, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let (all, machines) = (self.api.balancers().await?, self.api.machines().await?);
        let name = balancer_ref.service.default_balancer_name();
        let owner_of = |b: &Balancer| OWNER.owner(&b.labels, balancer_ref, None);
        let is_labelled = |b: &Balancer| owner_of(b) == Owner::Us;
        let found = Classified::among(&all, desired, &name, is_labelled, owner_of)?;
        Ok((found, machines.iter().map(|m| m.id).collect()))
    }
    fn plan(&self, desired: DesiredState<'_>, have: &Observed) -> Result<Vec<Change>, CloudError> {
        let (found, machines) = have;
        let leaving = found.ours.iter().filter(|balancer| !balancer.protected);
        let spec = match desired {
            DesiredState::Present(spec) => spec,
            DesiredState::Absent(_) => return Ok(leaving.map(|b| Change::Delete(b.id)).collect()),
            DesiredState::Released(_) => {
                return Err(CloudError::unsupported("release", "not shown here"));
            }
        };
        let is_served = |l: &Listener| l.protocol == Protocol::Tcp && l.node_port.is_some();
        if !spec.listeners.iter().all(is_served) {
            return Err(CloudError::invalid("plan balancer", "TCP node ports only"));
        }
        let Some(have) = found.balancer() else {
            let new = Balancer::named(spec.balancer_ref.service.default_balancer_name());
            return Ok(vec![Change::Create(wanted(new, spec, machines))]);
        };
        let want = wanted(have.clone(), spec, machines);
        let update = (*have != want).then(|| Change::Update(have.clone(), want));
        Ok(update.into_iter().collect())
    }
    async fn execute(
        &self,
        _: DesiredState<'_>,
        _: &Observed,
        change: &Change,
    ) -> Executed<Observed> {
        match change {
            Change::Create(new) => self.api.create_balancer(new).await?,
            Change::Update(have, want) => self.api.update_balancer(have, want).await?,
            Change::Delete(id) => self.api.delete_balancer(*id).await?,
        }
        Ok((StepOutcome::Done, None))
    }
    fn report(&self, _: DesiredState<'_>, (found, _): &Observed) -> Report {
        let mut report = Report::default();
        let kept = found.ours.iter().filter(|balancer| balancer.protected);
        report.kept = kept.map(|kept| kept.name.clone()).collect();
        if let Some(balancer) = found.ours.first() {
            let ingress = ingress(None, balancer.addresses.iter().copied(), false);
            report.status = LoadBalancerStatus::of(balancer.id.to_string(), ingress);
        }
        report
    }
    fn profile(&self, _: &BalancerRef) -> BalancerProfile {
        BalancerProfile::with_features(Features::default())
    }
}
