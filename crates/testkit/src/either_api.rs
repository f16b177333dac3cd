//! The two API servers that one suite runs on: the real one and the embedded one.
//!
//! A test is written once, as an async function over an [`EitherApi`], and named in [`on_both_apis`](crate::on_both_apis):
//! both runs are tests of their own.

use cloudkeel_embedded::{EmbeddedApi, Identity, Served};
use kube::Client;

use crate::control_plane::ControlPlane;

/// Which API server a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EitherApi {
    /// etcd and kube-apiserver, shared by all tests of the process.
    Real,
    /// The API in memory, served with TLS, one for each test.
    Embedded,
}

/// An API server at work. What is not shared ends with this value.
pub struct RunningApi(Running);

enum Running {
    Shared(&'static ControlPlane),
    Alone(Box<ControlPlane>),
    Embedded { api: EmbeddedApi, served: Served },
}

impl EitherApi {
    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started, which fails the test.
    pub async fn run(self) -> RunningApi {
        match self {
            Self::Real => RunningApi(Running::Shared(ControlPlane::shared().await)),
            Self::Embedded => RunningApi(embedded().await),
        }
    }

    /// Starts one that no other test uses, for what would change the objects of others.
    ///
    /// # Panics
    /// If it cannot be started, which fails the test.
    pub async fn run_alone(self) -> RunningApi {
        RunningApi(match self {
            Self::Real => {
                let plane = usable(ControlPlane::start().await, "control plane");
                Running::Alone(Box::new(plane))
            }
            Self::Embedded => embedded().await,
        })
    }
}

async fn embedded() -> Running {
    let api = EmbeddedApi::new();
    let served = usable(api.serve(0).await, "embedded API");
    Running::Embedded { api, served }
}

impl RunningApi {
    /// An administrator's client.
    pub fn client(&self) -> Client {
        match &self.0 {
            Running::Shared(plane) => plane.client(),
            Running::Alone(plane) => plane.client(),
            Running::Embedded { api, .. } => api.client("test"),
        }
    }

    /// The text of a kubeconfig for a program that is to act as this user in these groups (at most two).
    ///
    /// # Panics
    /// If it cannot be had, which fails the test.
    pub fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> String {
        let file = match &self.0 {
            Running::Shared(plane) => plane.kubeconfig_for(user, groups),
            Running::Alone(plane) => plane.kubeconfig_for(user, groups),
            Running::Embedded { served, .. } => {
                return served.kubeconfig(Identity::new(user, groups));
            }
        };
        usable(std::fs::read_to_string(file), "kubeconfig")
    }

    /// A client of a service account that exists. Only the real server looks at its roles.
    ///
    /// # Panics
    /// If it cannot be made, which fails the test.
    pub async fn service_account_client(&self, namespace: &str, name: &str) -> Client {
        let client = match &self.0 {
            Running::Shared(plane) => plane.service_account_client(namespace, name).await,
            Running::Alone(plane) => plane.service_account_client(namespace, name).await,
            Running::Embedded { api, .. } => {
                Ok(api.client_as(Identity::service_account(namespace, name), None))
            }
        };
        usable(client, "client of a service account")
    }
}

#[expect(clippy::panic, reason = "a test without its API server fails")]
fn usable<T, E: std::fmt::Display>(outcome: Result<T, E>, what: &str) -> T {
    outcome.unwrap_or_else(|error| panic!("no {what}: {error}"))
}

/// Makes two tests of each function that takes an [`EitherApi`](crate::either_api::EitherApi): one in the module
/// `on_the_real_api`, one in `on_the_embedded_api`.
#[macro_export]
macro_rules! on_both_apis {
    ($($test:ident),+ $(,)?) => {
        mod on_the_real_api {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::either_api::EitherApi::Real).await;
            })+
        }
        mod on_the_embedded_api {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::either_api::EitherApi::Embedded).await;
            })+
        }
    };
}
