//! Carrying out steps.

use std::time::Duration;

use cloudkeel_api::{CloudError, DesiredState, ErrorKind, Priority, StepOutcome};
use cloudkeel_http::Request;
use cloudkeel_toolkit::{is_refusal, json};

use super::OpenStackBalancers;
use super::step::{Call, Kind, Step};
use crate::client::{Api, Served, Service, if_revision, wrapped};
use crate::wire::balancer::{Listener, LoadBalancer, Monitor, Pool};
use crate::wire::network::{FloatingIp, GroupRule, Port, SecurityGroup};

/// When to check a load balancer that is being changed.
const CHANGING: Duration = Duration::from_secs(1);

/// Where a member of a pool is.
const MEMBER: &str = "/lbaas/pools/{pool}/members/{member}";

impl OpenStackBalancers {
    pub(super) async fn execute_step(
        &self,
        desired: DesiredState<'_>,
        step: &Step,
    ) -> Result<StepOutcome, CloudError> {
        let done = call(&self.servers.api, &step.call).await;
        match done {
            Ok(()) => {}
            // To a Service that stays, what is gone already is as good as deleted.
            Err(error) if error.is_not_found() && desired.spec().is_some() => {
                if !is_removal(&step.call) {
                    return Err(error.vanished());
                }
            }
            Err(error) => return Err(error.about(&step.text)),
        }
        if let Call::DeleteFailed { id } = &step.call {
            let message =
                format!("load balancer {id} ended in ERROR; it is deleted and will be built again");
            return Err(CloudError::new(
                "create load balancer",
                ErrorKind::Unavailable,
                message,
            ));
        }
        if step.locks_balancer() {
            return Ok(StepOutcome::Started {
                check_after: CHANGING,
            });
        }
        Ok(StepOutcome::Done)
    }
}

const fn is_removal(call: &Call) -> bool {
    matches!(
        call,
        Call::Delete { .. }
            | Call::DeleteCascade { .. }
            | Call::DeleteFailed { .. }
            | Call::RemoveMember { .. }
    )
}

async fn call(api: &Api, call: &Call) -> Result<(), CloudError> {
    let Call::CreateFloatingIp(candidates) = call else {
        let done = api.send(call.service(), call.request()).await;
        return match done {
            // Another attempt has made the same rule.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            done => done,
        };
    };
    // Subnets may be full, so the next is tried if one refuses.
    let mut last = None;
    for candidate in candidates {
        let body = json::body(candidate);
        let create = Call::Create {
            kind: Kind::FloatingIp,
            body,
        };
        match api.send(create.service(), create.request()).await {
            Err(error) if is_refusal(&error) => last = Some(error),
            done => return done,
        }
    }
    let nothing =
        || CloudError::invalid("create floating IP", "there is no subnet to create it in");
    Err(last.unwrap_or_else(nothing))
}

impl Kind {
    /// Its service, its path, and its name in bodies.
    const fn place(self) -> (Service, &'static str, &'static str) {
        const fn of<T: Served>() -> (Service, &'static str, &'static str) {
            (T::SERVICE, T::PATH, T::ONE)
        }
        match self {
            Self::Balancer => of::<LoadBalancer>(),
            Self::Listener => of::<Listener>(),
            Self::Pool => of::<Pool>(),
            Self::Monitor => of::<Monitor>(),
            Self::FloatingIp => of::<FloatingIp>(),
            Self::SecurityGroup => of::<SecurityGroup>(),
            Self::Rule => of::<GroupRule>(),
            Self::Port => of::<Port>(),
        }
    }
}

impl Call {
    const fn service(&self) -> Service {
        match self {
            Self::Create { kind, .. } | Self::Update { kind, .. } | Self::Delete { kind, .. } => {
                kind.place().0
            }
            Self::CreateFloatingIp(_) => Service::Network,
            _ => Service::Balancers,
        }
    }

    /// The request. Nothing that creates is repeated after a lost answer: the next observation shows what is there.
    fn request(&self) -> Request {
        match self {
            Self::Create { kind, body } => {
                let (_, path, one) = kind.place();
                Request::post(path)
                    .json(wrapped(one, body))
                    .priority(Priority::Urgent)
            }
            Self::Update {
                kind,
                id,
                revision,
                body,
            } => {
                let (_, path, one) = kind.place();
                let request = Request::put(format!("{path}/{{id}}"))
                    .param("id", id)
                    .json(wrapped(one, body));
                if_revision(request, *revision)
            }
            Self::SetMembers { pool, members } => Request::put("/lbaas/pools/{pool}/members")
                .param("pool", pool)
                .json(wrapped("members", members)),
            Self::AddMember { pool, member } => Request::post("/lbaas/pools/{pool}/members")
                .param("pool", pool)
                .json(wrapped("member", member)),
            Self::UpdateMember { pool, member, body } => Request::put(MEMBER)
                .param("pool", pool)
                .param("member", member)
                .json(wrapped("member", body)),
            Self::RemoveMember { pool, member } => Request::delete(MEMBER)
                .param("pool", pool)
                .param("member", member),
            Self::Delete { kind, id } => {
                Request::delete(format!("{}/{{id}}", kind.place().1)).param("id", id)
            }
            Self::DeleteCascade { id } | Self::DeleteFailed { id } => {
                Request::delete("/lbaas/loadbalancers/{id}")
                    .param("id", id)
                    .query("cascade", true)
            }
            Self::CreateFloatingIp(_) => Request::post(FloatingIp::PATH),
        }
    }
}
