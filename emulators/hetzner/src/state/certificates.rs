//! Real certificates: uploaded ones are read, managed ones are made.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{CertificateParams, KeyPair};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

use super::Issued;

/// How long a managed certificate is good for.
const MANAGED_DAYS: i64 = 90;

/// Reads a certificate in PEM: what it is, and its domains.
pub(crate) fn read_certificate(pem: &str) -> Option<(Issued, Vec<String>)> {
    let (_, first) = parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = first.parse_x509().ok()?;
    let validity = certificate.validity();
    let names = certificate.subject_alternative_name().ok()?;
    let names = names.iter().flat_map(|names| &names.value.general_names);
    let domains = names.filter_map(|name| match name {
        GeneralName::DNSName(domain) => Some((*domain).to_owned()),
        _ => None,
    });
    let issued = Issued {
        certificate: pem.to_owned(),
        fingerprint: fingerprint(&first.contents),
        not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
        not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
    };
    Some((issued, domains.collect()))
}

/// Makes a certificate for some domains, valid from now on. `None` if a domain cannot be in one.
pub(crate) fn issue(domains: &[String], now: Timestamp) -> Option<Issued> {
    let end = now
        .checked_add(jiff::Span::new().hours(24 * MANAGED_DAYS))
        .ok()?;
    let mut params = CertificateParams::new(domains.to_vec()).ok()?;
    let (year, month, day) = date_of(now)?;
    params.not_before = rcgen::date_time_ymd(year, month, day);
    let (year, month, day) = date_of(end)?;
    params.not_after = rcgen::date_time_ymd(year, month, day);
    let key = KeyPair::generate().ok()?;
    let certificate = params.self_signed(&key).ok()?;
    read_certificate(&certificate.pem()).map(|(issued, _)| issued)
}

fn date_of(time: Timestamp) -> Option<(i32, u8, u8)> {
    let date = time.to_zoned(TimeZone::UTC).date();
    let (month, day) = (date.month().try_into().ok()?, date.day().try_into().ok()?);
    Some((date.year().into(), month, day))
}

fn fingerprint(der: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, der);
    let octets = digest.as_ref().iter().map(|octet| format!("{octet:02x}"));
    octets.collect::<Vec<_>>().join(":")
}
