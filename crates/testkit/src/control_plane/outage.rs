//! An API server that stops and starts again with the same data.

use super::start::DEADLINE;
use super::supervisor::{Leftovers, Supervised};
use super::{ControlPlane, ControlPlaneError, Tool, kept_by_request, readiness};

impl ControlPlane {
    /// Kills the API server, in the middle of whatever it does. etcd keeps the data.
    pub fn stop_api_server(&mut self) {
        let name = Tool::KubeApiserver.name();
        for server in self.servers.iter_mut().filter(|it| it.name() == name) {
            server.stop(Leftovers::Keep);
            server.wait();
        }
    }

    /// Starts the API server again, at the same address, and waits until it is ready. Its watch cache is
    /// empty: a watch cannot continue from a resource version of before.
    pub async fn start_api_server(&mut self) -> Result<(), ControlPlaneError> {
        let Some(server) = self.api_server.clone() else {
            return Err(ControlPlaneError::NotOurs);
        };
        self.servers.retain(|it| it.name() != server.name);
        let again = Supervised::start(server, kept_by_request());
        let again = again.map_err(ControlPlaneError::io("start a supervisor again"))?;
        self.servers.push(again);
        readiness::wait(&self.clients, &mut self.servers, self.run.path(), DEADLINE).await?;
        Ok(())
    }
}
