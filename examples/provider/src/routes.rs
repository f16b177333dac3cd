//! Routes.
use crate::*;

/// The next hop to a Node, if it has a machine here.
fn hop(target: &RouteTarget) -> Option<Hop> {
    match target {
        RouteTarget::Node { provider_id, .. } => number(provider_id.as_ref()?).map(Hop::Machine),
        RouteTarget::Elsewhere { .. } => None,
    }
}

fn route(known: &sdk::Route, nodes: &[Shared<NodeFacts>]) -> Route {
    let mut targets = nodes.iter().map(|node| RouteTarget::node(node));
    let target = targets.find(|target| hop(target) == Some(known.hop));
    let hop = known.hop.to_string();
    Route {
        name: known.id.to_string(),
        destination: known.destination,
        target: target.unwrap_or(RouteTarget::Elsewhere { hop }),
        blackhole: known.blackhole,
        follows_addresses: false,
    }
}

impl Account {
    async fn change(&self, change: &RouteChange) -> Result<(), CloudError> {
        let mut table = self.api.routes().await?.into_iter();
        match change {
            RouteChange::Delete(old) if table.any(|known| known.id.to_string() == old.name) => {
                self.api.delete_route(&old.name).await
            }
            RouteChange::Delete(_) => Ok(()),
            RouteChange::Create(new) => {
                let nowhere = || CloudError::invalid("create route", "the Node has no machine");
                let (destination, hop) = (new.destination, hop(&new.target).ok_or_else(nowhere)?);
                if table.any(|known| known.destination == destination && known.hop == hop) {
                    return Ok(());
                }
                self.api.create_route(&NewRoute { destination, hop }).await
            }
        }
    }
}

#[async_trait]
impl Routes for Account {
    async fn list(&self, nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        let table = self.api.routes().await?;
        Ok(table.iter().map(|known| route(known, nodes)).collect())
    }
    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        let mut results: Vec<_> = changes.iter().map(|_| Ok(())).collect();
        for deletions in [true, false] {
            for (change, result) in changes.iter().zip(&mut results) {
                if matches!(change, RouteChange::Delete(_)) == deletions {
                    *result = self.change(change).await;
                }
            }
        }
        results
    }
}
