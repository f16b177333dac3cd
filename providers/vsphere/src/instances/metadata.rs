//! Addresses that cloud-init gave a guest, which come before those that appeared later, such as virtual ones.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

/// More than any network configuration has.
const BIGGEST: u64 = 1024 * 1024;

/// The static addresses in `guestinfo.metadata`. As in the Go CCM, only base64 is read.
pub(crate) fn static_addresses(
    guest_info: &BTreeMap<String, String>,
) -> Result<Vec<IpAddr>, String> {
    let encoding = guest_info.get("guestinfo.metadata.encoding");
    let is_read = encoding.is_some_and(|encoding| encoding == "base64");
    let Some(text) = guest_info.get("guestinfo.metadata").filter(|_| is_read) else {
        return Ok(Vec::new());
    };
    let metadata = yaml(&decode(text, "base64")?)?;
    let ethernets = match metadata.get("network") {
        Some(Value::String(text)) => {
            let encoding = metadata.get("network.encoding").and_then(Value::as_str);
            let network = yaml(&decode(text, encoding.unwrap_or_default())?)?;
            network.get("ethernets").cloned()
        }
        Some(network) => network.get("ethernets").cloned(),
        None => None,
    };
    Ok(addresses_of(&ethernets.unwrap_or_default()))
}

fn addresses_of(ethernets: &Value) -> Vec<IpAddr> {
    let ethernets = ethernets.as_object().into_iter().flatten();
    let addresses = ethernets.flat_map(|(_, ethernet)| {
        let addresses = ethernet.get("addresses").and_then(Value::as_array);
        addresses.into_iter().flatten()
    });
    let addresses = addresses.filter_map(Value::as_str);
    let ips = addresses.filter_map(|text| {
        let ip = text.split_once('/').map_or(text, |(ip, _)| ip);
        ip.parse().ok()
    });
    ips.collect()
}

fn yaml(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
    serde_saphyr::from_str(text).map_err(|_| "it is no YAML".to_owned())
}

fn decode(text: &str, encoding: &str) -> Result<Vec<u8>, String> {
    let wrong = |_| format!("it is no {encoding}");
    match encoding {
        "" => Ok(text.as_bytes().to_vec()),
        "base64" | "b64" => BASE64_STANDARD.decode(text.trim()).map_err(wrong),
        "gzip+base64" | "gz+b64" => {
            let packed = BASE64_STANDARD.decode(text.trim()).map_err(wrong)?;
            let mut bytes = Vec::new();
            let mut unpacked = GzDecoder::new(packed.as_slice()).take(BIGGEST);
            let read = unpacked.read_to_end(&mut bytes);
            read.map_err(|_| format!("it is no {encoding}"))?;
            Ok(bytes)
        }
        other => Err(format!(
            "network.encoding: {other:?}: expected `base64` or `gzip+base64`"
        )),
    }
}

#[cfg(test)]
mod tests;
