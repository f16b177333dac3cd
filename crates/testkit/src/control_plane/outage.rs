//! An API server that goes away and comes back, with everything that it knew.

use super::start::DEADLINE;
use super::supervisor::{Leftovers, Supervised};
use super::{ControlPlane, ControlPlaneError, kept_by_request, readiness};

impl ControlPlane {
    /// Kills the API server, in the middle of whatever it does. etcd keeps what it knew.
    pub fn stop_api_server(&mut self) {
        let name = self.api_server.name;
        for server in self.servers.iter_mut().filter(|it| it.name() == name) {
            server.stop(Leftovers::Keep);
            server.wait();
        }
    }

    /// Starts the API server again, at the same address, and waits until it is ready. It remembers no
    /// change from before: a watch that wants to go on from there has to begin anew.
    pub async fn start_api_server(&mut self) -> Result<(), ControlPlaneError> {
        let again = Supervised::start(self.api_server.clone(), kept_by_request());
        let again = again.map_err(ControlPlaneError::io("start a supervisor again"))?;
        self.servers.retain(|it| it.name() != self.api_server.name);
        self.servers.push(again);
        readiness::wait(&self.clients, &mut self.servers, self.run.path(), DEADLINE).await?;
        Ok(())
    }
}
