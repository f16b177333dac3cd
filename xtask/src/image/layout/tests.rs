use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

fn contents() -> Contents {
    Contents {
        program: b"#!/bin/sh\necho it runs\n".to_vec(),
        authorities: b"-----BEGIN CERTIFICATE-----\n".to_vec(),
        names: vec!["b-manager".to_owned(), "a-manager".to_owned()],
        architecture: "amd64".to_owned(),
        version: "0.1.0".to_owned(),
        commit: Commit {
            id: "c0ffee".to_owned(),
            seconds: 1_700_000_000,
            time: "2023-11-14T22:13:20Z".to_owned(),
        },
    }
}

struct Unpacked(PathBuf);

impl Unpacked {
    fn new(name: &str, tar: &[u8]) -> Self {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("archive"), tar).unwrap();
        let tar = Command::new("tar")
            .args(["xf", "archive"])
            .current_dir(&folder)
            .status();
        assert!(tar.unwrap().success());
        Self(folder)
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.bytes(path)).unwrap()
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.0.join(path)).unwrap()
    }

    /// The blob of a descriptor, whose size and digest are true.
    fn blob(&self, descriptor: &Value) -> Vec<u8> {
        let digest = descriptor["digest"].as_str().unwrap();
        let bytes = self.bytes(&format!("blobs/{}", digest.replace(':', "/")));
        assert_eq!(descriptor["size"], bytes.len());
        assert_eq!(digest, super::digest(&bytes));
        bytes
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_digest_is_that_of_others() {
    let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(digest(b""), empty);
}

type Change = fn(&mut Contents);

#[test]
fn equal_contents_make_an_equal_archive_and_others_make_another() {
    let first = image(&contents()).unwrap();
    let mut reordered = contents();
    reordered.names.reverse();
    let again = image(&reordered).unwrap();
    assert!(first.archive == again.archive);
    assert_eq!(first.digest, again.digest);
    let changes: [(&str, Change); 5] = [
        ("program", |it| it.program.push(b'x')),
        ("authorities", |it| it.authorities.push(b'x')),
        ("names", |it| it.names.truncate(1)),
        ("architecture", |it| it.architecture = "arm64".to_owned()),
        ("commit", |it| it.commit.id.push('x')),
    ];
    for (case, change) in changes {
        let mut contents = contents();
        change(&mut contents);
        assert_ne!(image(&contents).unwrap().digest, first.digest, "{case}");
    }
}

#[test]
fn from_the_index_everything_is_found_and_true() {
    let image = image(&contents()).unwrap();
    let layout = Unpacked::new("layout", &image.archive);
    assert_eq!(layout.json("oci-layout")["imageLayoutVersion"], "1.0.0");
    let named = layout.json("index.json")["manifests"][0].clone();
    assert_eq!(named["digest"], image.digest);
    let manifest: Value = serde_json::from_slice(&layout.blob(&named)).unwrap();
    let config: Value = serde_json::from_slice(&layout.blob(&manifest["config"])).unwrap();
    let layer = layout.blob(&manifest["layers"][0]);
    assert_eq!(
        config["rootfs"]["diff_ids"][0],
        manifest["layers"][0]["digest"]
    );
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/cloudkeel"]));
    assert_eq!(config["architecture"], "amd64");
    assert_eq!(
        config["config"]["Labels"]["org.opencontainers.image.revision"],
        "c0ffee"
    );

    let root = Unpacked::new("root", &layer);
    let run = Command::new(root.0.join("cloudkeel")).output().unwrap();
    assert_eq!(run.stdout, b"it runs\n");
    assert_eq!(
        root.bytes("etc/ssl/certs/ca-certificates.crt"),
        contents().authorities
    );
    for name in ["a-manager", "b-manager"] {
        let link = fs::read_link(root.0.join("bin").join(name)).unwrap();
        assert_eq!(link, Path::new("/cloudkeel"));
    }
    assert_eq!(
        fs::read_link(root.0.join("usr/local/bin")).unwrap(),
        Path::new("/bin")
    );
}
