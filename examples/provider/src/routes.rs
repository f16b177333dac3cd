//! Routes.
use crate::*;

#[async_trait]
impl RouteTable for Account {
    type Row = Route;
    type Hops = ();
    async fn rows(&self) -> Result<Vec<Route>, CloudError> {
        self.api.routes().await
    }
    fn name(&self, row: &Route) -> String {
        row.id.to_string()
    }
    fn destination(&self, row: &Route) -> IpNet {
        row.destination
    }
    fn hop(&self, row: &Route, (): &()) -> String {
        row.hop.to_string()
    }
    fn node<'a>(&self, row: &Route, (): &(), nodes: &'a Nodes) -> Option<&'a NodeFacts> {
        node_by_id(nodes, |id| number(id).map(Hop::Machine) == Some(row.hop))
    }
    fn is_blackhole(&self, row: &Route, (): &()) -> bool {
        row.blackhole
    }
    fn row(&self, destination: IpNet, node: RouteNode<'_>, (): &()) -> Result<Route, CloudError> {
        let nowhere = || CloudError::invalid("create route", "the Node has no machine");
        let hop = Hop::Machine(node.provider_id.and_then(number).ok_or_else(nowhere)?);
        Ok(Route {
            id: 0,
            destination,
            hop,
            blackhole: false,
        })
    }
    fn is_same(&self, wanted: &Route, present: &Route) -> bool {
        wanted.hop == present.hop
    }
    async fn change(&self, change: &RowChange<Route>) -> Result<(), CloudError> {
        match change {
            RowChange::Remove(row) => self.api.delete_route(&row.id.to_string()).await,
            RowChange::Add(row) => {
                let (destination, hop) = (row.destination, row.hop);
                self.api.create_route(&NewRoute { destination, hop }).await
            }
        }
    }
}
