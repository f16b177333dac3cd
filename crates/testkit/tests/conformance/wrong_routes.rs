//! Routes, with one sin.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, NodeFacts, Route, RouteChange, RouteTarget, Routes};

use crate::sin::Sin;
use crate::wrong::Wrong;

impl Wrong {
    fn drop_routes_in_the_way(&self, changes: &[RouteChange]) {
        for route in self.cloud.routes() {
            let in_the_way = |change: &RouteChange| match change {
                RouteChange::Create(new) => new.destination == route.destination,
                RouteChange::Delete(_) => false,
            };
            if changes.iter().any(in_the_way) {
                self.cloud.drop_route(route.id).unwrap();
            }
        }
    }
}

#[async_trait]
impl Routes for Wrong {
    async fn list(&self, nodes: &[NodeFacts]) -> Result<Vec<Route>, CloudError> {
        let mut routes = self.routes_of_right().list(nodes).await;
        match (&mut routes, self.sin) {
            (Ok(routes), Sin::HidesForeignRoutes) => {
                routes.retain(|route| !matches!(route.target, RouteTarget::Elsewhere { .. }));
            }
            (Err(_), Sin::ListsNothingOnErrors) => return Ok(Vec::new()),
            _ => {}
        }
        routes
    }

    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        if self.sin == Sin::TakesOverRoutes {
            self.drop_routes_in_the_way(changes);
        }
        if self.sin == Sin::MakesRoutesAgain {
            let there = self.routes_of_right().list(&[]).await.unwrap_or_default();
            let away: Vec<_> = there.into_iter().map(RouteChange::Delete).collect();
            self.routes_of_right().apply(&away).await;
        }
        let mut results = self.routes_of_right().apply(changes).await;
        if self.sin == Sin::AnswersOnce {
            results.truncate(1);
        }
        results
    }
}
