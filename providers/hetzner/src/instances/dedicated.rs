//! Dedicated servers.

use cloudkeel_api::{
    Absence, CloudError, Doubt, Event, Existence, Instance, InstanceState, NodeFacts, ProviderId,
    Sighting,
};

use super::{HetznerInstances, Rules, address, provided_by};
use crate::client::{Login, Robot};
use crate::id::HetznerId;
use crate::wire::RobotServer;

/// The reason of the event about a Node whose server has got another name.
const POSSIBLE_DELETION: &str = "PossibleNodeDeletion";

impl HetznerInstances {
    pub(super) async fn look_up_dedicated(
        &self,
        node: &NodeFacts,
        id: &ProviderId,
        number: u64,
    ) -> Existence {
        let robot = match &self.robot {
            Login::Known(robot) => robot,
            Login::NoCredentials => return unasked(id, "there are no credentials for Robot"),
            Login::Off => return unasked(id, "Robot is not enabled"),
        };
        let server = match find_listed(robot, number, &node.name).await {
            Some(server) => Ok(server),
            None => robot.server(number).await,
        };
        let server = match server {
            Ok(server) if server.name == node.name => server,
            Ok(server) => return self.renamed(node, id, &server, robot).await,
            Err(error) if error.is_not_found() => {
                return self
                    .missing(id, number, "GET /server/{number}", robot)
                    .await;
            }
            Err(error) => return Existence::Unknown(Doubt::NoAnswer(error)),
        };
        let state = match robot.operating_status(number).await.as_deref() {
            Some("shut off") => InstanceState::ShutDown,
            Some("running" | "not supported") => InstanceState::Running,
            _ => InstanceState::Unknown,
        };
        Existence::present(Instance {
            state,
            ..self.rules.robot(&server)
        })
    }

    /// "No such server" counts only if the same account shows another one right now.
    async fn missing(
        &self,
        id: &ProviderId,
        number: u64,
        operation: &'static str,
        robot: &Robot,
    ) -> Existence {
        let servers = match robot.servers_now().await {
            Ok(servers) => servers,
            Err(error) => return Existence::Unknown(Doubt::NoAnswer(error)),
        };
        let now = self.clock.now();
        let scope = &self.scope;
        let witness = servers.iter().find(|server| server.number != number);
        let seen =
            witness.map(|server| Sighting::of(&self.rules.robot(server), scope, self.clock.now()));
        let absence = Absence::from_empty_answer(operation, scope, now);
        Existence::weigh_absence(id.clone(), absence, seen.as_ref())
    }

    /// The server is there under another name: it may have become another Node, or somebody only
    /// renamed it. Whether that is proof enough is a setting.
    async fn renamed(
        &self,
        node: &NodeFacts,
        id: &ProviderId,
        server: &RobotServer,
        robot: &Robot,
    ) -> Existence {
        let why = format!(
            "dedicated server {} is called {:?}, but the Node {:?}",
            server.number, server.name, node.name
        );
        let event = Event::warning(node, POSSIBLE_DELETION, &why);
        self.teller.tell(event);
        if !self.rules.delete_renamed {
            return unasked(id, &why);
        }
        let operation = "GET /server/{number} (renamed)";
        self.missing(id, server.number, operation, robot).await
    }
}

/// The server as the last list shows it, if that is all that could be asked for. Robot allows few
/// requests.
async fn find_listed(robot: &Robot, number: u64, name: &str) -> Option<RobotServer> {
    let servers = robot.servers().await.ok()?;
    let mut servers = servers.iter();
    let found = servers.find(|server| server.number == number && server.name == name);
    found.cloned()
}

/// The servers of this name, as they are now. The last list only says which of them to ask for: a Node that is
/// new may have a server that has got the name since.
pub(super) async fn named(robot: &Robot, name: &str) -> Result<Vec<RobotServer>, CloudError> {
    let listed = robot.servers().await?;
    let mut found = Vec::new();
    for known in listed.iter().filter(|server| server.name == name) {
        match robot.server(known.number).await {
            Ok(server) if server.name == name => found.push(server),
            Err(error) if !error.is_not_found() => return Err(error),
            Ok(_) | Err(_) => {
                let now = robot.servers_now().await?;
                let namesakes = now.iter().filter(|server| server.name == name);
                return Ok(namesakes.cloned().collect());
            }
        }
    }
    Ok(found)
}

fn unasked(id: &ProviderId, why: &str) -> Existence {
    Existence::Unknown(Doubt::NotOurs {
        id: id.clone(),
        why: why.to_owned(),
    })
}

impl Rules {
    /// A dedicated server as a machine. Whether it runs, the list does not show.
    pub(crate) fn robot(&self, server: &RobotServer) -> Instance {
        let zone = server.dc.to_lowercase();
        let region = zone.split('-').next().unwrap_or(&zone).to_owned();
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        Instance {
            instance_type: said(as_label(&server.product)),
            zone: said(zone),
            region: said(region),
            addresses: address::of_robot(server, self.family),
            labels: provided_by("robot"),
            ..Instance::new(HetznerId::Robot(server.number).provider_id(), &server.name)
        }
    }
}

/// A product's name as the value of a label, which begins and ends with a letter or a digit.
pub(super) fn as_label(product: &str) -> String {
    let allowed = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let label: String = product.replace(' ', "-").chars().filter(allowed).collect();
    let is_mark = |c: char| !c.is_ascii_alphanumeric();
    let short: String = label.trim_start_matches(is_mark).chars().take(63).collect();
    short.trim_end_matches(is_mark).to_owned()
}
