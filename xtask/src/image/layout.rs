//! An image as an OCI archive: what skopeo calls `oci-archive`, and podman and containerd load.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::tar::{Entry, archive};

/// What the image is made of. Equal contents make an equal archive, byte for byte.
pub(crate) struct Contents {
    pub(crate) program: Vec<u8>,
    /// The certificate authorities of the public, as PEM.
    pub(crate) authorities: Vec<u8>,
    /// The names of Go CCMs that the program answers to.
    pub(crate) names: Vec<String>,
    /// As OCI calls it: `amd64`, `arm64`.
    pub(crate) architecture: String,
    pub(crate) version: String,
    pub(crate) commit: Commit,
}

/// What the program was built from.
#[derive(Clone)]
pub(crate) struct Commit {
    pub(crate) id: String,
    /// Its time, in seconds since the epoch and as RFC 3339: every time in the image.
    pub(crate) seconds: u64,
    pub(crate) time: String,
}

/// The user of the container: no user of any system.
const USER: &str = "65532:65532";

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An archive, and the digest by which registries know the image.
pub(crate) struct Image {
    pub(crate) archive: Vec<u8>,
    pub(crate) digest: String,
}

/// Writes the image.
pub(crate) fn image(contents: &Contents) -> Result<Image, String> {
    let layer = layer(contents)?;
    let config = text(&config(contents, &digest(&layer)));
    let manifest = text(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, &config),
        "layers": [descriptor(LAYER, &layer)],
        "annotations": labels(contents),
    }));
    let mut named = descriptor(MANIFEST, &manifest);
    if let Some(named) = named.as_object_mut() {
        let name = json!({"org.opencontainers.image.ref.name": contents.version});
        named.insert("annotations".into(), name);
        let platform = json!({"architecture": contents.architecture, "os": "linux"});
        named.insert("platform".into(), platform);
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]});
    let index = text(&index);
    let mut blobs: Vec<_> = [&layer, &config, &manifest]
        .map(|blob| (path_of(blob), blob.as_slice()))
        .into();
    blobs.sort();
    let file = |bytes| Entry::File {
        bytes,
        is_program: false,
    };
    let mut entries = vec![("blobs/", Entry::Folder), ("blobs/sha256/", Entry::Folder)];
    entries.extend(blobs.iter().map(|(path, blob)| (path.as_str(), file(blob))));
    entries.push(("index.json", file(&index)));
    entries.push(("oci-layout", file(b"{\"imageLayoutVersion\":\"1.0.0\"}")));
    Ok(Image {
        archive: archive(&entries, contents.commit.seconds)?,
        digest: digest(&manifest),
    })
}

/// The file system: the program, the names it answers to where charts look for them, and the authorities.
fn layer(contents: &Contents) -> Result<Vec<u8>, String> {
    let mut names = contents.names.clone();
    names.sort();
    let links: Vec<_> = names.iter().map(|name| format!("bin/{name}")).collect();
    let mut entries = vec![("bin/", Entry::Folder)];
    entries.extend(
        links
            .iter()
            .map(|link| (link.as_str(), Entry::Link("/cloudkeel"))),
    );
    let (program, authorities) = (&contents.program, &contents.authorities);
    entries.extend([
        (
            "cloudkeel",
            Entry::File {
                bytes: program,
                is_program: true,
            },
        ),
        ("etc/", Entry::Folder),
        ("etc/ssl/", Entry::Folder),
        ("etc/ssl/certs/", Entry::Folder),
        (
            "etc/ssl/certs/ca-certificates.crt",
            Entry::File {
                bytes: authorities,
                is_program: false,
            },
        ),
        ("usr/", Entry::Folder),
        ("usr/local/", Entry::Folder),
        ("usr/local/bin", Entry::Link("/bin")),
    ]);
    archive(&entries, contents.commit.seconds)
}

fn config(contents: &Contents, layer: &str) -> Value {
    json!({
        "created": contents.commit.time,
        "architecture": contents.architecture,
        "os": "linux",
        "config": {
            "User": USER,
            "Entrypoint": ["/cloudkeel"],
            "Env": ["PATH=/bin"],
            "WorkingDir": "/",
            "Labels": labels(contents),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer]},
        "history": [{"created": contents.commit.time, "created_by": "cargo xtask image"}],
    })
}

fn labels(contents: &Contents) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("org.opencontainers.image.title", "cloudkeel".to_owned()),
        (
            "org.opencontainers.image.description",
            "A Kubernetes cloud-controller-manager with the clouds in it".to_owned(),
        ),
        ("org.opencontainers.image.licenses", "Apache-2.0".to_owned()),
        (
            "org.opencontainers.image.source",
            "https://github.com/cloudkeel/cloudkeel".to_owned(),
        ),
        ("org.opencontainers.image.version", contents.version.clone()),
        (
            "org.opencontainers.image.revision",
            contents.commit.id.clone(),
        ),
        (
            "org.opencontainers.image.created",
            contents.commit.time.clone(),
        ),
        // Which bundle it is: two builds from one commit differ only if this does.
        (
            "dev.cloudkeel.ca-certificates",
            digest(&contents.authorities),
        ),
    ])
}

fn descriptor(kind: &str, blob: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": digest(blob), "size": blob.len()})
}

fn digest(blob: &[u8]) -> String {
    use std::fmt::Write as _;
    let hash = Sha256::digest(blob);
    hash.iter().fold("sha256:".to_owned(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn path_of(blob: &[u8]) -> String {
    format!("blobs/{}", digest(blob).replace(':', "/"))
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests;
