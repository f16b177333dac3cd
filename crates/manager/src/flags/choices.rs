//! Flags whose values are words of cloudkeel's own.

use cloudkeel_api::KeyValue;
use cloudkeel_controllers::service::spec::HealthCheckChoice;

/// Which health checks load balancers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthCheckFlag(pub HealthCheckChoice);

impl KeyValue for HealthCheckFlag {
    const TYPE: &'static str = "choice";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self(HealthCheckChoice::Auto)),
            "compatible" => Ok(Self(HealthCheckChoice::Compatible)),
            "node-port" => Ok(Self(HealthCheckChoice::NodePort)),
            "kube-proxy" => Ok(Self(HealthCheckChoice::KubeProxy)),
            _ => Err("`auto`, `compatible`, `node-port` or `kube-proxy`".to_owned()),
        }
    }
}
