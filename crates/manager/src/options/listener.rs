//! Options of a TLS listener.

use std::net::IpAddr;
use std::path::PathBuf;

use cloudkeel_api::Problem;
use serde::Serialize;

use super::reader::OptionReader;
use crate::flags::{self, ListenerFlags};

/// Where and how a port is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenerOptions {
    /// Address.
    pub address: IpAddr,
    /// Port; 0 serves nothing.
    pub port: u16,
    /// HTTP/2 besides HTTP/1.1.
    pub http2: bool,
    /// Streams per HTTP/2 connection.
    pub http2_streams: u32,
    /// Directory for a self-signed certificate.
    pub cert_dir: Option<PathBuf>,
    /// Given certificate and key.
    pub cert_and_key: Option<(PathBuf, PathBuf)>,
    /// Cipher suites by their Go names; empty for all.
    pub cipher_suites: Vec<String>,
    /// Lowest TLS version by its Go name.
    pub min_version: String,
    /// Certificates by server name.
    pub sni: Vec<SniPair>,
    /// `SO_REUSEPORT`
    pub share_port: bool,
}

/// A certificate for some server names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SniPair {
    /// The certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Server names; empty for those in the certificate.
    pub names: Vec<String>,
}

impl ListenerOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>, flags: &ListenerFlags) -> Option<Self> {
        let address = read_address(reader, flags);
        let port = reader.value(&flags.secure_port);
        let http2_off = reader.value(&flags.disable_http2);
        let streams = reader.value(&flags::HTTP2_MAX_STREAMS);
        let cert_dir = reader.text(&flags.cert_dir);
        let cert_and_key = read_pair(reader, flags);
        let cipher_suites = reader.list(&flags.cipher_suites);
        let min_version = read_min_version(reader, flags);
        let sni = read_sni(reader, flags);
        let share_port = reader.value(&flags::PERMIT_PORT_SHARING);
        Some(Self {
            address: address?,
            port: port?,
            http2: !http2_off?,
            http2_streams: match streams? {
                0 => 100,
                given => given,
            },
            cert_dir: cert_dir?.map(PathBuf::from),
            cert_and_key: cert_and_key?,
            cipher_suites: cipher_suites?,
            min_version: min_version?,
            sni: sni?,
            share_port: share_port?,
        })
    }
}

fn read_address(reader: &mut OptionReader<'_>, flags: &ListenerFlags) -> Option<IpAddr> {
    let text = reader.value(&flags.bind_address)?;
    let address = text.parse().ok();
    if address.is_none() {
        let flag = format!("--{}", flags.bind_address.name());
        reader.refuse(&flag, text, "an IP address such as `0.0.0.0` or `::`");
    }
    address
}

#[expect(
    clippy::option_option,
    reason = "wrong and absent are different, and both go on"
)]
fn read_pair(
    reader: &mut OptionReader<'_>,
    flags: &ListenerFlags,
) -> Option<Option<(PathBuf, PathBuf)>> {
    let cert = reader.text(&flags.cert_file);
    let key = reader.text(&flags.key_file);
    match (cert?, key?) {
        (Some(cert), Some(key)) => Some(Some((cert.into(), key.into()))),
        (None, None) => Some(None),
        (given, _) => {
            let (cert, key) = (flags.cert_file.name(), flags.key_file.name());
            let missing = if given.is_some() { key } else { cert };
            reader.note(Problem::new(
                format!("--{missing}"),
                format!("is required: --{cert} and --{key} go together"),
            ));
            None
        }
    }
}

fn read_min_version(reader: &mut OptionReader<'_>, flags: &ListenerFlags) -> Option<String> {
    let version = reader.value(&flags.min_version)?;
    match version.as_str() {
        "" => Some("VersionTLS12".to_owned()),
        // The listener warns about the first two, so that a command line written for Go keeps working.
        "VersionTLS10" | "VersionTLS11" | "VersionTLS12" | "VersionTLS13" => Some(version),
        _ => {
            let flag = format!("--{}", flags.min_version.name());
            reader.refuse(&flag, version, "VersionTLS12 or VersionTLS13");
            None
        }
    }
}

fn read_sni(reader: &mut OptionReader<'_>, flags: &ListenerFlags) -> Option<Vec<SniPair>> {
    let mut pairs = Vec::new();
    for text in reader.repeated(&flags.sni)? {
        if let Some(pair) = parse_sni(&text) {
            pairs.push(pair);
        } else {
            let flag = format!("--{}", flags.sni.name());
            reader.refuse(
                &flag,
                text,
                "`file.crt,file.key` or `file.crt,file.key:name,name`",
            );
        }
    }
    Some(pairs)
}

fn parse_sni(text: &str) -> Option<SniPair> {
    let (files, names) = match text.rsplit_once(':') {
        Some((files, names)) => (files, names.split(',').map(str::to_owned).collect()),
        None => (text, Vec::new()),
    };
    let (cert, key) = files.split_once(',')?;
    let whole = !cert.is_empty() && !key.is_empty() && names.iter().all(|name| !name.is_empty());
    whole.then(|| SniPair {
        cert: cert.into(),
        key: key.into(),
        names,
    })
}
