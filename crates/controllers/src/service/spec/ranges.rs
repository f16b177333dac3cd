//! Who may connect.

use cloudkeel_api::{Problem, Problems};
use ipnet::IpNet;

use crate::node::addresses::parse_ip;
use crate::view::ServiceView;
use crate::wellknown::SOURCE_RANGES_ANNOTATION;

/// The source ranges: the field if it has any, else the annotation. Every network once, in its order,
/// without host bits; empty means everybody.
pub(super) fn read(service: &ServiceView, problems: &mut Problems) -> Vec<IpNet> {
    let field = "spec.loadBalancerSourceRanges";
    let given: Vec<(&str, &str)> = if service.source_ranges.is_empty() {
        in_annotation(service)
            .map(|text| (SOURCE_RANGES_ANNOTATION, text))
            .collect()
    } else {
        let texts = service.source_ranges.iter();
        texts.map(|text| (field, text.as_str())).collect()
    };
    let mut ranges = Vec::new();
    for (key, text) in given {
        match parse(text.trim()) {
            Some(range) if ranges.contains(&range) => {}
            Some(range) => ranges.push(range),
            None => problems.push(Problem::unexpected(
                key,
                text,
                "a network such as `10.0.0.0/24`",
            )),
        }
    }
    ranges
}

/// What the annotation lists; nothing if it is blank.
fn in_annotation(service: &ServiceView) -> impl Iterator<Item = &str> {
    service
        .annotations
        .get(SOURCE_RANGES_ANNOTATION)
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
        .into_iter()
        .flat_map(|text| text.split(','))
}

/// Reads a network as the Go framework does, which takes leading zeros and drops host bits.
fn parse(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(length) {
        return None;
    }
    let range = IpNet::new(parse_ip(address)?, length.parse().ok()?).ok()?;
    Some(range.trunc())
}
