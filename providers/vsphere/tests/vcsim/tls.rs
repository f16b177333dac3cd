//! Certificates: verified, trusted by thumbprint or by a file, or not verified.

use cloudkeel_api::{CloudProvider as _, ErrorKind};
use cloudkeel_provider_vsphere::{VSphereProvider, Wiring};
use serde_json::{Value, json};

use crate::lab::Lab;

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_certificate_is_trusted_by_thumbprint_file_or_flag_and_not_otherwise() {
    let mut lab = Lab::new(1).await;
    let [sha1, sha256] = lab.vcenters[0].thumbprints().map(str::to_owned);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lab.vcenters[0].ca()).unwrap();
    let wrong = ["AB"; 20].join(":");
    let original = lab.settings.clone();
    for (case, key, value, is_trusted) in [
        ("nothing", "user", json!("user"), false),
        ("SHA-1", "thumbprint", json!(sha1), true),
        ("SHA-256", "thumbprint", json!(sha256.to_lowercase()), true),
        ("another thumbprint", "thumbprint", json!(wrong), false),
        ("a CA file", "caFile", json!(file.path()), true),
        ("no verification", "insecureFlag", json!(true), true),
    ] {
        lab.settings = original.clone();
        let entry: &mut Value = &mut lab.settings["vcenter"]["vc0"];
        entry[key] = value;
        let connected =
            VSphereProvider::connect(&lab.config(), &lab.context(), Wiring::default()).await;
        match (connected, is_trusted) {
            (Ok(provider), true) => provider.close().await,
            (Err(error), false) => assert_eq!(error.kind(), ErrorKind::Invalid, "{case}: {error}"),
            (Ok(_), false) => panic!("{case}: it is trusted"),
            (Err(error), true) => panic!("{case}: {error}"),
        }
    }
}
