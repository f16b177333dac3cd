//! Load balancers: observe, plan, execute.
use crate::*;

/// The label that says whose balancer it is: the UID of a Service.
const MARK: &str = "cloudkeel.dev/service-uid";

/// Which balancer is the Service's, and which machines there are.
pub(crate) type Observed = (Judged<Balancer>, BTreeSet<u64>);
type Executed = Result<StepOutcome, CloudError>;

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

fn owner(balancer: &Balancer, claim: &Claim) -> Owner {
    match balancer.labels.get(MARK) {
        Some(uid) if *uid == claim.service.uid => Owner::Us,
        Some(uid) => Owner::Other(format!("Service {uid}")),
        None => Owner::Nobody,
    }
}
/// A balancer, changed to what the Service asks for. Nodes wait until they have a machine.
fn wanted(mut balancer: Balancer, spec: &LoadBalancerSpec, machines: &BTreeSet<u64>) -> Balancer {
    let uid = spec.claim.service.uid.clone();
    balancer.labels.insert(MARK.into(), uid);
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
    async fn observe(&self, wish: Wish<'_>) -> Result<Observed, CloudError> {
        let claim = wish.claim();
        let (all, machines) = (self.api.balancers().await?, self.api.machines().await?);
        let name = claim.service.default_balancer_name();
        let owner_of = |balancer: &Balancer| owner(balancer, claim);
        let candidates = Candidates::among(&all, claim, &name, |b| owner_of(b) == Owner::Us);
        let found = match wish {
            Wish::Present(_) => candidates.judge(claim, Namesakes::InTheWay, owner_of)?,
            Wish::Absent(_) | Wish::Released(_) => candidates.going(owner_of),
        };
        Ok((found, machines.iter().map(|m| m.id).collect()))
    }
    fn plan(&self, wish: Wish<'_>, have: &Observed) -> Result<Vec<Change>, CloudError> {
        let (found, machines) = have;
        let going = found.ours.iter().filter(|balancer| !balancer.protected);
        let spec = match wish {
            Wish::Present(spec) => spec,
            Wish::Absent(_) => return Ok(going.map(|b| Change::Delete(b.id)).collect()),
            Wish::Released(_) => return Err(CloudError::unsupported("release", "not shown here")),
        };
        let is_served = |l: &Listener| l.protocol == Protocol::Tcp && l.node_port.is_some();
        if !spec.listeners.iter().all(is_served) {
            return Err(CloudError::invalid("plan balancer", "TCP node ports only"));
        }
        let Some(have) = found.balancer() else {
            let new = Balancer::named(spec.claim.service.default_balancer_name());
            return Ok(vec![Change::Create(wanted(new, spec, machines))]);
        };
        let want = wanted(have.clone(), spec, machines);
        let update = (*have != want).then(|| Change::Update(have.clone(), want));
        Ok(update.into_iter().collect())
    }
    async fn execute(&self, _: Wish<'_>, _: &Observed, change: &Change) -> Executed {
        match change {
            Change::Create(new) => self.api.create_balancer(new).await?,
            Change::Update(have, want) => self.api.update_balancer(have, want).await?,
            Change::Delete(id) => self.api.delete_balancer(*id).await?,
        }
        Ok(StepOutcome::Done)
    }
    fn report(&self, _: Wish<'_>, (found, _): &Observed) -> Report {
        let (mut report, mode) = (Report::default(), IpMode::Vip);
        let kept = found.ours.iter().filter(|balancer| balancer.protected);
        report.kept = kept.map(|kept| kept.name.clone()).collect();
        if let Some(balancer) = found.ours.first() {
            let addresses = balancer.addresses.iter().copied();
            let ingress = addresses.map(|ip| Ingress::Ip { ip, mode }).collect();
            report.status = LoadBalancerStatus::of(balancer.id.to_string(), ingress);
        }
        report
    }
    fn profile(&self, _: &Claim) -> BalancerProfile {
        BalancerProfile::with_features(Features::default())
    }
}
