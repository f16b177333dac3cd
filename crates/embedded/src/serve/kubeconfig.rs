//! What `kubectl` and other programs find the API by. JSON is YAML too.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

const NAME: &str = "cloudkeel-embedded";

pub(super) fn kubeconfig(url: &str, ca_pem: &str, user: &str, token: &str) -> String {
    let authority = BASE64_STANDARD.encode(ca_pem);
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{
            "name": NAME,
            "cluster": {"server": url, "certificate-authority-data": authority},
        }],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": user}}],
    });
    format!("{kubeconfig:#}\n")
}
