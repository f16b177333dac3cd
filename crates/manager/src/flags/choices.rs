//! Flags whose values are words of cloudkeel's own.

use cloudkeel_api::KeyValue;
use cloudkeel_controllers::service::Drift;
use cloudkeel_controllers::service::spec::HealthCheckChoice;

/// What happens to a load balancer that was changed in the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriftFlag(pub Drift);

impl KeyValue for DriftFlag {
    const TYPE: &'static str = "choice";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "repair" => Ok(Self(Drift::Repair)),
            "report" => Ok(Self(Drift::Report)),
            "off" => Ok(Self(Drift::Off)),
            _ => Err("`repair`, `report` or `off`".to_owned()),
        }
    }
}

/// Which health checks load balancers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthCheckFlag(pub HealthCheckChoice);

impl KeyValue for HealthCheckFlag {
    const TYPE: &'static str = "choice";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "compatible" => Ok(Self(HealthCheckChoice::Compatible)),
            "node-port" => Ok(Self(HealthCheckChoice::NodePort)),
            "kube-proxy" => Ok(Self(HealthCheckChoice::KubeProxy)),
            _ => Err("`compatible`, `node-port` or `kube-proxy`".to_owned()),
        }
    }
}
