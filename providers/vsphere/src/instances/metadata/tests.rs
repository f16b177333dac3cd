use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

const ETHERNETS: &str = "ethernets:\n  id0:\n    addresses: [10.0.0.5/24, 'fd00::5/64', nonsense]\n  \
                         id1:\n    dhcp4: true\n";

fn base64(text: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(text)
}

fn read(metadata: &str, encoding: Option<&str>) -> Result<String, String> {
    let mut guest_info = BTreeMap::from([("guestinfo.metadata".to_owned(), metadata.to_owned())]);
    if let Some(encoding) = encoding {
        guest_info.insert(
            "guestinfo.metadata.encoding".to_owned(),
            encoding.to_owned(),
        );
    }
    let ips = static_addresses(&guest_info)?;
    let ips: Vec<_> = ips.iter().map(ToString::to_string).collect();
    Ok(ips.join(" "))
}

fn indented(text: &str) -> String {
    format!("  {}\n", text.trim_end().replace('\n', "\n  "))
}

#[test]
fn static_addresses_are_read_in_every_encoding() {
    let inline = base64(format!("network:\n{}", indented(ETHERNETS)));
    assert_eq!(read(&inline, Some("base64")).unwrap(), "10.0.0.5 fd00::5");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(ETHERNETS.as_bytes()).unwrap();
    let packed = base64(packed.finish().unwrap());
    for (encoding, network) in [
        ("base64", base64(ETHERNETS)),
        ("b64", base64(ETHERNETS)),
        ("gzip+base64", packed.clone()),
        ("gz+b64", packed),
    ] {
        let metadata = base64(format!(
            "network: {network}\nnetwork.encoding: {encoding}\n"
        ));
        let found = read(&metadata, Some("base64"));
        assert_eq!(found.as_deref(), Ok("10.0.0.5 fd00::5"), "{encoding}");
    }
}

#[test]
fn what_is_not_base64_is_not_read_and_what_is_wrong_is_said() {
    let inline = base64(format!("network:\n{}", indented(ETHERNETS)));
    for encoding in [None, Some("gzip+base64"), Some("Base64")] {
        assert_eq!(read(&inline, encoding).unwrap(), "", "{encoding:?}");
    }
    assert_eq!(static_addresses(&BTreeMap::new()), Ok(Vec::new()));
    assert_eq!(
        read(&base64("instance-id: a\n"), Some("base64")).unwrap(),
        ""
    );
    for (case, metadata, expected) in [
        ("no base64", "%%%".to_owned(), "it is no base64"),
        ("no YAML", base64("a: [b"), "it is no YAML"),
        ("no text", base64([0xff]), "it is no text"),
        (
            "no gzip",
            base64("network: eHh4\nnetwork.encoding: gz+b64\n"),
            "it is no gz+b64",
        ),
        (
            "an unknown encoding",
            base64("network: x\nnetwork.encoding: rot13\n"),
            "network.encoding: \"rot13\": expected `base64` or `gzip+base64`",
        ),
    ] {
        assert_eq!(
            read(&metadata, Some("base64")),
            Err(expected.to_owned()),
            "{case}"
        );
    }
}
