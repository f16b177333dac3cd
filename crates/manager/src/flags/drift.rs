//! The values of `--load-balancer-drift`.

use cloudkeel_api::KeyValue;
use cloudkeel_controllers::service::Drift;

/// What happens to a load balancer that is not as it was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriftChoice(pub Drift);

impl KeyValue for DriftChoice {
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
