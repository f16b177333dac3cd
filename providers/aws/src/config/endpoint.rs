//! Where the services are.

use cloudkeel_api::{KeyDoc, KeyPlace, Problem, Problems};
use cloudkeel_toolkit::settings::{Ini, Section};

use super::Config;
use crate::client::Service;

const SECTION: &str = "ServiceOverride";

/// The service whose address is that of the metadata service. Its region does not count.
const METADATA: &str = "ec2imds";

/// Another address of a service, from `[ServiceOverride "1"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The service, as the Go SDK names it: `EC2`, `Elastic Load Balancing v2`.
    pub service: String,
    /// The region that it holds for.
    pub region: String,
    /// The address.
    pub url: String,
    /// The region that requests are signed for.
    pub signing_region: String,
}

/// Where a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) url: String,
    pub(crate) signing_region: String,
}

impl Override {
    /// All of a file. Each has to be complete, and none may be there twice.
    pub(super) fn read_all(ini: &Ini) -> Result<Vec<Self>, Problems> {
        let (mut found, mut problems) = (Vec::<Self>::new(), Problems::new());
        for section in ini.sections(SECTION) {
            let Some(one) = problems.note(Self::read(section)) else {
                continue;
            };
            let is_same = |o: &Self| (&o.service, &o.region) == (&one.service, &one.region);
            if found.iter().any(is_same) {
                let message = format!("{} in {} is there twice", one.service, one.region);
                problems.push(Problem::new(place(section), message));
            }
            found.push(one);
        }
        problems.into_result()?;
        Ok(found)
    }

    fn read(section: &Section) -> Result<Self, Problem> {
        let field = |name: &str| {
            let mut entries = section.entries.iter().rev();
            let found = entries.find(|(key, _)| key.eq_ignore_ascii_case(name));
            let text = found.map(|(_, value)| value.trim().to_owned());
            let missing = || Problem::new(place(section), format!("{name} is required"));
            text.filter(|text| !text.is_empty()).ok_or_else(missing)
        };
        Ok(Self {
            service: field("Service")?,
            region: field("Region")?,
            url: field("URL")?,
            signing_region: field("SigningRegion")?,
        })
    }

    pub(super) fn docs() -> Vec<KeyDoc> {
        let row = |name, help| KeyDoc {
            place: KeyPlace::File,
            name,
            value_type: "text",
            choices: &[],
            range: None,
            default: None,
            required: false,
            secret: false,
            help,
        };
        vec![
            row(
                "ServiceOverride.Service",
                "A service with another address: `EC2`, `Elastic Load Balancing`, `Elastic Load Balancing v2`, `STS` \
                 or `ec2imds`, exactly as written here.",
            ),
            row(
                "ServiceOverride.Region",
                "The region that the address is for.",
            ),
            row("ServiceOverride.URL", "The address."),
            row(
                "ServiceOverride.SigningRegion",
                "The region that requests are signed for.",
            ),
            row(
                "ServiceOverride.SigningName",
                "Accepted, without effect: the service decides the name.",
            ),
            row(
                "ServiceOverride.SigningMethod",
                "Accepted, without effect: it is version 4.",
            ),
        ]
    }
}

fn place(section: &Section) -> String {
    format!(
        "{SECTION} {:?}",
        section.subsection.as_deref().unwrap_or_default()
    )
}

impl Config {
    /// Where a service is: an override, an address of its own, one for all, else the one of the region.
    pub(crate) fn endpoint(&self, service: Service, region: &str) -> Endpoint {
        let mut overrides = self.overrides.iter();
        let is_it = |o: &&Override| o.service == service.id() && o.region == region;
        if let Some(found) = overrides.find(is_it) {
            return Endpoint {
                url: found.url.trim_end_matches('/').to_owned(),
                signing_region: found.signing_region.clone(),
            };
        }
        let own = match service {
            Service::Ec2 => &self.ec2_url,
            Service::Elb => &self.elb_url,
            Service::ElbV2 => &self.elbv2_url,
            Service::Sts => &self.sts_url,
        };
        let given = own.as_ref().or(self.endpoint_url.as_ref());
        let url = match given {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!(
                "https://{}.{region}.{}",
                service.signing_name(),
                suffix(region)
            ),
        };
        Endpoint {
            url,
            signing_region: region.to_owned(),
        }
    }

    /// Where the metadata service is, if it is not in its usual place.
    pub(crate) fn metadata_endpoint(&self) -> Option<&str> {
        let mut overrides = self.overrides.iter();
        let found = overrides.find(|o| o.service == METADATA);
        found
            .map(|o| o.url.as_str())
            .or(self.metadata_url.as_deref())
    }
}

/// The domain of the partition that a region is in.
fn suffix(region: &str) -> &'static str {
    const PARTITIONS: &[(&str, &str)] = &[
        ("cn-", "amazonaws.com.cn"),
        ("us-isob-", "sc2s.sgov.gov"),
        ("us-isof-", "csp.hci.ic.gov"),
        ("us-iso-", "c2s.ic.gov"),
        ("eu-isoe-", "cloud.adc-e.uk"),
        ("eusc-", "amazonaws.eu"),
    ];
    let mut partitions = PARTITIONS.iter();
    let found = partitions.find(|(prefix, _)| region.starts_with(prefix));
    found.map_or("amazonaws.com", |(_, suffix)| suffix)
}
