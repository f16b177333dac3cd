//! Changes of load balancers: each is accepted only while the load balancer is active, and makes it pending.

use cloudkeel_emulation::{Answer, Call};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Context, body};
use crate::OpenStackCloud;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::rest::network::{self, created, ok};
use crate::state::{Change, End, Kind, list, merge, refers, text};

/// What a listener has that is not asked for.
fn listener_defaults() -> Value {
    json!({
        "name": "", "connection_limit": -1, "tags": [], "allowed_cidrs": null, "insert_headers": {},
        "default_tls_container_ref": null, "timeout_client_data": 50_000, "timeout_member_connect": 5_000,
        "timeout_member_data": 50_000, "timeout_tcp_inspect": 0, "default_pool_id": null,
    })
}

impl Context<'_> {
    pub(super) fn change_balancer(&mut self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        use Operation as Op;
        let id = call.path_param("id").to_owned();
        match call.operation {
            Op::CreateLoadBalancer => self.create_balancer(&body(call, "loadbalancer")?),
            Op::UpdateLoadBalancer => {
                let fields = body(call, "loadbalancer")?;
                self.found(Kind::LoadBalancer, &id)?;
                self.update_part(Kind::LoadBalancer, &id, &id, &fields)
            }
            Op::DeleteLoadBalancer => {
                self.delete_balancer(&id, call.params().get("cascade") == Some("true"))
            }
            Op::CreateListener => {
                let listener = body(call, "listener")?;
                let balancer = text(&listener, "loadbalancer_id").to_owned();
                self.begin_on(&balancer)?;
                let listener = self.add_listener(&balancer, &listener)?;
                Ok(created("listener", &listener))
            }
            Op::UpdateListener => self.update_child(Kind::Listener, &id, &body(call, "listener")?),
            Op::DeleteListener => {
                self.begin_on_parent(Kind::Listener, &id)?;
                self.project.remove(Kind::Listener, &id, self.now);
                let is_its = |pool: &Value| refers(pool, "listeners", &id);
                for pool in self.project.those(Kind::Pool, is_its) {
                    let (id, none) = (text(&pool, "id"), json!({"listeners": []}));
                    self.project.set(Kind::Pool, id, &none, self.now);
                }
                Ok(Answer::empty(StatusCode::NO_CONTENT))
            }
            Op::CreatePool => {
                let pool = body(call, "pool")?;
                let listener = text(&pool, "listener_id").to_owned();
                let balancer = self.begin_on_parent(Kind::Listener, &listener)?;
                let pool = self.add_pool(&balancer, &listener, &pool)?;
                Ok(created("pool", &pool))
            }
            Op::UpdatePool => self.update_child(Kind::Pool, &id, &body(call, "pool")?),
            Op::DeletePool => {
                self.begin_on_parent(Kind::Pool, &id)?;
                self.project.forget_pool(&id, self.now);
                Ok(Answer::empty(StatusCode::NO_CONTENT))
            }
            _ => self.change_members(&id, call),
        }
    }

    fn change_members(&mut self, id: &str, call: &Call<Operation>) -> Result<Answer, Refusal> {
        use Operation as Op;
        match call.operation {
            Op::ListMembers => {
                self.found(Kind::Pool, id)?;
                let mut members = self.project.all(Kind::Member, self.view);
                members.retain(|member| text(member, "pool_id") == id);
                Ok(Answer::json(StatusCode::OK, &json!({"members": members})))
            }
            Op::SetMembers => {
                self.begin_on_parent(Kind::Pool, id)?;
                let is_its = |member: &Value| text(member, "pool_id") == id;
                for member in self.project.those(Kind::Member, is_its) {
                    let id = text(&member, "id");
                    self.project.remove(Kind::Member, id, self.now);
                }
                for member in body(call, "members")?.as_array().into_iter().flatten() {
                    self.add_member(id, member);
                }
                Ok(Answer::empty(StatusCode::ACCEPTED))
            }
            Op::CreateMember => {
                let asked = body(call, "member")?;
                let is_same = |member: &Value| {
                    let is_there = |field| member.get(field) == asked.get(field);
                    text(member, "pool_id") == id
                        && is_there("address")
                        && is_there("protocol_port")
                };
                if !self.project.those(Kind::Member, is_same).is_empty() {
                    return Err(Refusal::new(
                        409,
                        "",
                        "Another member on this pool is already using it",
                    ));
                }
                self.begin_on_parent(Kind::Pool, id)?;
                let member = self.add_member(id, &asked);
                Ok(created("member", &member))
            }
            Op::UpdateMember => {
                let (member, fields) = (call.path_param("member"), body(call, "member")?);
                self.found(Kind::Member, member)?;
                self.begin_on_parent(Kind::Pool, id)?;
                self.project.set(Kind::Member, member, &fields, self.now);
                Ok(ok("member", &self.found(Kind::Member, member)?))
            }
            Op::DeleteMember => {
                let member = call.path_param("member").to_owned();
                self.found(Kind::Member, &member)?;
                self.begin_on_parent(Kind::Pool, id)?;
                self.project.remove(Kind::Member, &member, self.now);
                Ok(Answer::empty(StatusCode::NO_CONTENT))
            }
            _ => self.change_monitors(id, call),
        }
    }

    fn change_monitors(&mut self, id: &str, call: &Call<Operation>) -> Result<Answer, Refusal> {
        use Operation as Op;
        match call.operation {
            Op::CreateMonitor => {
                let monitor = body(call, "healthmonitor")?;
                let pool = text(&monitor, "pool_id").to_owned();
                if !self
                    .project
                    .those(Kind::Monitor, |monitor| refers(monitor, "pools", &pool))
                    .is_empty()
                {
                    return Err(Refusal::new(
                        409,
                        "",
                        "This pool already has a health monitor",
                    ));
                }
                self.begin_on_parent(Kind::Pool, &pool)?;
                let monitor = self.add_monitor(&pool, &monitor);
                Ok(created("healthmonitor", &monitor))
            }
            Op::UpdateMonitor => {
                let pool = self.pool_of_monitor(id)?;
                self.begin_on_parent(Kind::Pool, &pool)?;
                self.project
                    .set(Kind::Monitor, id, &body(call, "healthmonitor")?, self.now);
                Ok(ok("healthmonitor", &self.found(Kind::Monitor, id)?))
            }
            _ => {
                let pool = self.pool_of_monitor(id)?;
                self.begin_on_parent(Kind::Pool, &pool)?;
                self.project.remove(Kind::Monitor, id, self.now);
                let none = json!({"healthmonitor_id": null});
                self.project.set(Kind::Pool, &pool, &none, self.now);
                Ok(Answer::empty(StatusCode::NO_CONTENT))
            }
        }
    }

    fn pool_of_monitor(&self, id: &str) -> Result<String, Refusal> {
        let monitor = self.found(Kind::Monitor, id)?;
        let pool = list(&monitor, "pools").first();
        Ok(pool
            .map(|pool| text(pool, "id").to_owned())
            .unwrap_or_default())
    }

    fn change(&mut self, is_new: bool, end: End) -> Change {
        Change {
            job: self.ids.uuid(),
            duration: self.settings.job_duration,
            is_new,
            end: if self.ends_in_error { End::Error } else { end },
        }
    }

    /// Makes a load balancer pending, or refuses if it is already.
    fn begin_on(&mut self, balancer: &str) -> Result<(), Refusal> {
        let found = self.found(Kind::LoadBalancer, balancer)?;
        if text(&found, "provisioning_status") != "ACTIVE" {
            return Err(Refusal::immutable(balancer));
        }
        let change = self.change(false, End::Active);
        self.project.begin_change(balancer, change, self.now);
        Ok(())
    }

    /// The same for the load balancer of a part.
    fn begin_on_parent(&mut self, kind: Kind, id: &str) -> Result<String, Refusal> {
        let part = self.found(kind, id)?;
        let balancer = list(&part, "loadbalancers").first();
        let balancer = balancer
            .map(|balancer| text(balancer, "id").to_owned())
            .unwrap_or_default();
        self.begin_on(&balancer)?;
        Ok(balancer)
    }

    fn update_part(
        &mut self,
        kind: Kind,
        balancer: &str,
        id: &str,
        fields: &Value,
    ) -> Result<Answer, Refusal> {
        self.begin_on(balancer)?;
        self.project.set(kind, id, fields, self.now);
        Ok(ok(kind.names().0, &self.found(kind, id)?))
    }

    fn update_child(&mut self, kind: Kind, id: &str, fields: &Value) -> Result<Answer, Refusal> {
        self.begin_on_parent(kind, id)?;
        self.project.set(kind, id, fields, self.now);
        Ok(ok(kind.names().0, &self.found(kind, id)?))
    }

    fn create_balancer(&mut self, asked: &Value) -> Result<Answer, Refusal> {
        if self.project.table(Kind::LoadBalancer).count() >= self.settings.load_balancers {
            return Err(Refusal::new(
                403,
                "",
                "Quota has been met for resources: Load Balancer",
            ));
        }
        let subnet = text(asked, "vip_subnet_id");
        if !subnet.is_empty() {
            self.found(Kind::Subnet, subnet)?;
        }
        let (id, port, number) = (self.ids.uuid(), self.ids.uuid(), self.ids.number());
        let asked_ip = text(asked, "vip_address");
        let ip = if asked_ip.is_empty() {
            network::address("10.6", number)
        } else {
            asked_ip.to_owned()
        };
        self.project.put(
            Kind::Port,
            network::port(&port, &format!("lb-{id}"), &ip, number),
            self.now,
        );
        let mut balancer = json!({
            "id": id, "name": "", "description": "", "tags": [], "provider": "amphora", "flavor_id": null,
            "availability_zone": null, "vip_network_id": OpenStackCloud::NETWORK, "vip_subnet_id": OpenStackCloud::SUBNET,
        });
        merge(&mut balancer, asked);
        merge(
            &mut balancer,
            &json!({"vip_address": ip, "vip_port_id": port, "listeners": []}),
        );
        self.project.put(Kind::LoadBalancer, balancer, self.now);
        for listener in list(asked, "listeners") {
            let created = self.add_listener(&id, listener)?;
            if let Some(pool) = listener.get("default_pool") {
                let created_pool = self.add_pool(&id, text(&created, "id"), pool)?;
                for member in list(pool, "members") {
                    self.add_member(text(&created_pool, "id"), member);
                }
                if let Some(monitor) = pool.get("healthmonitor") {
                    self.add_monitor(text(&created_pool, "id"), monitor);
                }
            }
        }
        let change = self.change(true, End::Active);
        self.project.begin_change(&id, change, self.now);
        let shown = self.found(Kind::LoadBalancer, &id)?;
        Ok(created("loadbalancer", &shown))
    }

    fn delete_balancer(&mut self, id: &str, cascade: bool) -> Result<Answer, Refusal> {
        let balancer = self.found(Kind::LoadBalancer, id)?;
        if !matches!(text(&balancer, "provisioning_status"), "ACTIVE" | "ERROR") {
            return Err(Refusal::immutable(id));
        }
        let has_children = !self
            .project
            .those(Kind::Listener, |l| refers(l, "loadbalancers", id))
            .is_empty();
        if has_children && !cascade {
            return Err(Refusal::invalid(format!(
                "Validation failure: Cannot delete Load Balancer {id} - it has children"
            )));
        }
        let change = self.change(false, End::Gone);
        self.project.begin_change(id, change, self.now);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    fn add_listener(&mut self, balancer: &str, asked: &Value) -> Result<Value, Refusal> {
        let family = |listener: &Value| match text(listener, "protocol") {
            "UDP" => "UDP",
            "SCTP" => "SCTP",
            _ => "TCP",
        };
        let is_same = |listener: &Value| {
            refers(listener, "loadbalancers", balancer)
                && listener.get("protocol_port") == asked.get("protocol_port")
                && family(listener) == family(asked)
        };
        if !self.project.those(Kind::Listener, is_same).is_empty() {
            let message = format!(
                "Another Listener on this Load Balancer is already using protocol {} and protocol_port {}",
                text(asked, "protocol"),
                asked.get("protocol_port").unwrap_or(&Value::Null)
            );
            return Err(Refusal::new(409, "", message));
        }
        let mut listener = listener_defaults();
        merge(&mut listener, asked);
        merge(
            &mut listener,
            &json!({"id": self.ids.uuid(), "loadbalancers": [{"id": balancer}], "default_pool": null}),
        );
        self.project.put(Kind::Listener, listener.clone(), self.now);
        Ok(listener)
    }

    fn add_pool(
        &mut self,
        balancer: &str,
        listener: &str,
        asked: &Value,
    ) -> Result<Value, Refusal> {
        if !self
            .project
            .those(Kind::Pool, |pool| refers(pool, "listeners", listener))
            .is_empty()
        {
            return Err(Refusal::new(
                409,
                "",
                "This listener already has a default pool",
            ));
        }
        let mut pool = json!({"name": "", "session_persistence": null, "healthmonitor_id": null});
        merge(&mut pool, asked);
        merge(
            &mut pool,
            &json!({
                "id": self.ids.uuid(), "loadbalancers": [{"id": balancer}], "listeners": [{"id": listener}],
                "members": null, "healthmonitor": null,
            }),
        );
        self.project.put(Kind::Pool, pool.clone(), self.now);
        let default = json!({"default_pool_id": text(&pool, "id")});
        self.project
            .set(Kind::Listener, listener, &default, self.now);
        Ok(pool)
    }

    fn add_member(&mut self, pool: &str, asked: &Value) -> Value {
        let mut member = json!({"name": "", "weight": 1, "monitor_port": null, "subnet_id": null});
        merge(&mut member, asked);
        merge(
            &mut member,
            &json!({"id": self.ids.uuid(), "pool_id": pool}),
        );
        self.project.put(Kind::Member, member.clone(), self.now);
        member
    }

    fn add_monitor(&mut self, pool: &str, asked: &Value) -> Value {
        let mut monitor =
            json!({"name": "", "url_path": null, "http_method": null, "expected_codes": null});
        merge(&mut monitor, asked);
        merge(
            &mut monitor,
            &json!({"id": self.ids.uuid(), "pools": [{"id": pool}]}),
        );
        self.project.put(Kind::Monitor, monitor.clone(), self.now);
        let default = json!({"healthmonitor_id": text(&monitor, "id")});
        self.project.set(Kind::Pool, pool, &default, self.now);
        monitor
    }
}
