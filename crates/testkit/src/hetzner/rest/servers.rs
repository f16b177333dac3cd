//! Calls that change servers.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::operation::Operation;
use super::super::refusal::Refusal;
use super::super::world::actions::Action;
use super::super::world::{
    Destination, Labels, Moment, PrivateNet, Project, Scene, Server, ServerSpec, ServerStatus,
    edit, find_server_type, mac_address,
};
use super::body::{IdOrName, read};
use super::names::{Update, check_new};
use super::places::PlaceWish;
use super::{Answer, Call};

#[derive(Deserialize)]
struct NewServer {
    name: String,
    server_type: IdOrName,
    image: IdOrName,
    location: Option<IdOrName>,
    #[serde(default)]
    networks: Vec<u64>,
    #[serde(default)]
    labels: Labels,
    public_net: Option<NewPublicNet>,
    start_after_create: Option<bool>,
}

#[derive(Deserialize)]
struct NewPublicNet {
    enable_ipv4: Option<bool>,
    enable_ipv6: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Protection {
    pub(super) delete: Option<bool>,
}

impl Scene<'_> {
    pub(super) fn change_server(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        if call.operation == Operation::CreateServer {
            return self.create_server(call);
        }
        let id = call.id("server")?;
        let found = self.project.servers.get(id);
        let server = found
            .ok_or_else(|| Refusal::not_found("server", id))?
            .as_ref()
            .clone();
        if call.operation == Operation::UpdateServer {
            let update: Update = read(call.body)?;
            update.apply(&mut self.project.servers, id, self.now)?;
            let changed = self.project.servers.get(id);
            return self.show("server", id, changed, Self::render_server);
        }
        self.project.check_unlocked(("server", id))?;
        let action = match call.operation {
            Operation::DeleteServer => return self.delete_server(&server),
            Operation::AttachServer => self.attach_server(&server, &read(call.body)?)?,
            Operation::DetachServer => self.detach_server(&server, &read(call.body)?)?,
            Operation::ChangeAliasIps => self.change_alias_ips(&server, &read(call.body)?)?,
            Operation::ChangeServerProtection => {
                let wanted: Protection = read(call.body)?;
                let work = self.work("change_protection", vec![("server", id)]);
                let protect = move |project: &mut Project, now| {
                    edit(&mut project.servers, id, now, |server| {
                        server.protected = wanted.delete.unwrap_or(server.protected);
                    });
                };
                self.project.begin(work, protect, None)
            }
            operation => self.power(&server, operation),
        };
        Ok(self.began(&action))
    }

    fn create_server(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let new: NewServer = read(call.body)?;
        check_new(&self.project.servers, &new.name, &new.labels)?;
        let kind = find_server_type(&new.server_type.0).ok_or_else(|| {
            Refusal::invalid("server_type", format!("unknown type {}", new.server_type))
        })?;
        let spec = ServerSpec {
            name: new.name,
            image: kind.image(&new.image.0),
            server_type: new.server_type.0,
            location: new
                .location
                .map_or_else(|| "fsn1".to_owned(), |location| location.0),
            ipv4: new
                .public_net
                .as_ref()
                .and_then(|net| net.enable_ipv4)
                .unwrap_or(true),
            ipv6: new
                .public_net
                .as_ref()
                .and_then(|net| net.enable_ipv6)
                .unwrap_or(true),
            networks: new
                .networks
                .into_iter()
                .map(|network| (network, None))
                .collect(),
            labels: new.labels,
        };
        if spec.image.is_none() {
            return Err(Refusal::invalid(
                "image",
                format!("unknown image {}", new.image),
            ));
        }
        let server = self.add_server(spec, ServerStatus::Initializing)?;
        let id = server.id;
        let starts = new.start_after_create.unwrap_or(true);
        let made = if starts {
            ServerStatus::Starting
        } else {
            ServerStatus::Off
        };
        let work = self.work("create_server", vec![("server", id)]);
        let create = self.project.begin(work, becomes(id, made), None);
        let mut next = Vec::new();
        if starts {
            let mut work = self.work("start_server", vec![("server", id)]);
            work.due = work.due.plus(self.settings.action_duration);
            next.push(
                self.project
                    .begin(work, becomes(id, ServerStatus::Running), None),
            );
        }
        let now = self.now.instant;
        let server = self
            .project
            .servers
            .get(id)
            .map(|server| self.render_server(server));
        let next: Vec<Value> = next.iter().map(|action| action.wire(now)).collect();
        Ok(Answer::created(json!({
            "server": server,
            "action": create.wire(now),
            "next_actions": next,
            "root_password": null,
        })))
    }

    /// The server is gone when its action is over, and with it every target that led to it.
    fn delete_server(&mut self, server: &Server) -> Result<Answer, Refusal> {
        if server.protected {
            return Err(Refusal::new("protected", "server deletion is protected"));
        }
        let id = server.id;
        edit(&mut self.project.servers, id, self.now, |server| {
            server.status = ServerStatus::Deleting;
        });
        let work = self.work("delete_server", vec![("server", id)]);
        let on_error = Box::new(becomes(id, server.status));
        let forget = move |project: &mut Project, now| project.forget_server(id, now);
        let action = self.project.begin(work, forget, Some(on_error));
        Ok(Answer::ok(json!({"action": action.wire(self.now.instant)})))
    }

    fn power(&mut self, server: &Server, operation: Operation) -> Action {
        let id = server.id;
        let (command, meanwhile, at_last) = match operation {
            Operation::PowerOn => (
                "start_server",
                ServerStatus::Starting,
                ServerStatus::Running,
            ),
            Operation::PowerOff => ("stop_server", ServerStatus::Stopping, ServerStatus::Off),
            Operation::Shutdown => ("shutdown_server", ServerStatus::Stopping, ServerStatus::Off),
            Operation::Reboot => (
                "reboot_server",
                ServerStatus::Running,
                ServerStatus::Running,
            ),
            _ => (
                "reset_server",
                ServerStatus::Starting,
                ServerStatus::Running,
            ),
        };
        let work = self.work(command, vec![("server", id)]);
        edit(&mut self.project.servers, id, self.now, |server| {
            server.status = meanwhile;
        });
        let on_error = Box::new(becomes(id, server.status));
        self.project
            .begin(work, becomes(id, at_last), Some(on_error))
    }

    fn attach_server(&mut self, server: &Server, wish: &PlaceWish) -> Result<Action, Refusal> {
        if server.in_network(wish.network).is_some() {
            let message = "server is already attached to this network";
            return Err(Refusal::new("server_already_attached", message));
        }
        let (network, ip) = self.find_place(wish, server.location.network_zone)?;
        let net = PrivateNet {
            network,
            ip,
            alias_ips: wish.aliases()?,
            mac_address: mac_address(ip),
        };
        let id = server.id;
        let resources = vec![("server", id), ("network", network)];
        let mut work = self.work("attach_to_network", resources);
        work.place = Some((network, ip));
        let attach = move |project: &mut Project, now| {
            edit(&mut project.servers, id, now, |server| {
                server.private_net.push(net);
            });
        };
        Ok(self.project.begin(work, attach, None))
    }

    fn detach_server(&mut self, server: &Server, wish: &PlaceWish) -> Result<Action, Refusal> {
        let (id, network) = (server.id, wish.network);
        if server.in_network(network).is_none() {
            return Err(Refusal::not_found("network of the server", network));
        }
        let resources = vec![("server", id), ("network", network)];
        let work = self.work("detach_from_network", resources);
        let detach = move |project: &mut Project, now| {
            edit(&mut project.servers, id, now, |server| {
                server.private_net.retain(|net| net.network != network);
            });
        };
        Ok(self.project.begin(work, detach, None))
    }

    fn change_alias_ips(&mut self, server: &Server, wish: &PlaceWish) -> Result<Action, Refusal> {
        let (id, wanted) = (server.id, wish.network);
        let network = self.project.networks.get(wanted);
        let network = network.ok_or_else(|| Refusal::not_found("network", wanted))?;
        let Some(present) = server.in_network(wanted) else {
            return Err(Refusal::not_found("network of the server", wanted));
        };
        let aliases = wish.aliases()?;
        for ip in &aliases {
            if !present.alias_ips.contains(ip) && !self.project.is_free_in(network, *ip) {
                let message = format!("{ip} is not available in network {wanted}");
                return Err(Refusal::new("ip_not_available", message));
            }
        }
        let resources = vec![("server", id), ("network", wanted)];
        let work = self.work("change_alias_ips", resources);
        let change = move |project: &mut Project, now| {
            edit(&mut project.servers, id, now, |server| {
                for net in server
                    .private_net
                    .iter_mut()
                    .filter(|net| net.network == wanted)
                {
                    net.alias_ips.clone_from(&aliases);
                }
            });
        };
        Ok(self.project.begin(work, change, None))
    }
}

impl Project {
    /// Removes a server, and every target that leads to it.
    pub(in super::super) fn forget_server(&mut self, id: u64, now: Moment) {
        self.servers.remove(id, now.instant);
        let gone = Destination::Server(id);
        let affected = self.balancers.iter();
        let affected =
            affected.filter(|(_, balancer)| balancer.targets.iter().any(|t| t.to == gone));
        let affected: Vec<u64> = affected.map(|(balancer, _)| balancer).collect();
        for balancer in affected {
            edit(&mut self.balancers, balancer, now, |balancer| {
                balancer.targets.retain(|target| target.to != gone);
            });
        }
    }
}

fn becomes(id: u64, status: ServerStatus) -> impl FnOnce(&mut Project, Moment) + Send + 'static {
    move |project, now| {
        edit(&mut project.servers, id, now, |server| {
            server.status = status;
        });
    }
}
