use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, CloudProvider, Descriptor, ProviderContext, ProviderFactory, ProviderInput,
};

use super::*;
use crate::flags::{FlagTable, parse};
use crate::options::Options;

struct Named(&'static str);

#[async_trait]
impl ProviderFactory for Named {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            name: self.0,
            summary: "A name.",
            replaces: &[],
            capabilities: vec![],
            keys: vec![],
        }
    }

    async fn build(
        &self,
        _input: ProviderInput,
        _context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        Err(Problems::new().into())
    }
}

fn registry() -> Registry {
    let registry = Registry::new().with(Named("hcloud")).unwrap();
    registry.with(Named("openstack")).unwrap()
}

/// Loads with a file of this content, whose path stands as `FILE` in the line.
fn load_with(line: &str, content: &str, implied: Option<&str>) -> Result<Setup, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cloud.conf");
    std::fs::write(&path, content).unwrap();
    let line = line.replace("FILE", path.to_str().unwrap());
    let line = parse(&FlagTable::new(&[]), line.split_whitespace()).unwrap();
    let options = Options::read(&line, &[]).unwrap();
    load(&options.generic, implied, &registry())
        .map_err(|error| error.to_string().replace(path.to_str().unwrap(), "FILE"))
}

const OURS: &str = "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n\
                    - name: fsn\n  provider: hcloud\n  config: {network: kube}\n";

#[test]
fn a_go_ccms_flags_give_one_cloud_with_its_file_untouched() {
    let ini = "[Global]\nauth-url=http://127.0.0.1/v3\n";
    let setup = load_with("--cloud-provider=openstack --cloud-config=FILE", ini, None).unwrap();
    let [cloud] = setup.clouds.as_slice() else {
        panic!("{setup:?}");
    };
    assert_eq!(
        (cloud.name.as_str(), cloud.load_balancers.default),
        ("openstack", true)
    );
    let ConfigSource::File { text, .. } = &cloud.config else {
        panic!("{cloud:?}");
    };
    assert_eq!(text, ini);
}

#[test]
fn a_file_of_ours_names_its_clouds_itself() {
    let setup = load_with("--cloud-config=FILE", OURS, None).unwrap();
    assert_eq!(setup.clouds[0].name, "fsn");
    let error = load_with("--cloud-config=FILE --cloud-provider=hcloud", OURS, None).unwrap_err();
    assert!(error.contains("already lists its clouds"), "{error}");
}

#[test]
fn the_programs_name_counts_only_if_nothing_else_does() {
    let implied = load_with("", "", Some("hcloud")).unwrap();
    assert_eq!(implied.clouds[0].provider, "hcloud");
    let flagged = load_with("--cloud-provider=openstack", "", Some("hcloud")).unwrap();
    assert_eq!(flagged.clouds[0].provider, "openstack");
    let ours = load_with("--cloud-config=FILE", OURS, Some("openstack")).unwrap();
    assert_eq!(ours.clouds[0].provider, "hcloud");
}

#[test]
fn mistakes_are_reported_with_what_would_be_right() {
    for (case, line, content, expected) in [
        (
            "no provider",
            "",
            "",
            "--cloud-provider cannot be empty: name one of hcloud, openstack",
        ),
        (
            "external is none",
            "--cloud-provider=external",
            "",
            "--cloud-provider cannot be empty",
        ),
        (
            "typo",
            "--cloud-provider=hclod",
            "",
            "did you mean \"hcloud\"?",
        ),
        (
            "no file",
            "--cloud-config=/does/not/exist",
            "",
            "expected a readable file",
        ),
        (
            "wrong file",
            "--cloud-config=FILE",
            "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds: []\n",
            "\"FILE\" is wrong:\nclouds: expected a list of at least one cloud",
        ),
    ] {
        let error = load_with(line, content, None).unwrap_err();
        assert!(error.contains(expected), "{case}: {error}");
    }
}

#[test]
fn a_broken_file_is_reported_by_position_without_its_contents() {
    let ours = "apiVersion: \"cloudkeel.dev/v1\"\nkind: CloudConfig\nclouds:\n";
    for (case, rest, place) in [
        (
            "a bracket",
            "- {name: a, config: {token: hunter2}\n",
            "line 4",
        ),
        (
            "a key twice",
            "- name: a\n  token: hunter2\n  token: hunter2\n",
            "line 6",
        ),
        (
            "an unknown anchor",
            "- name: a\n  token: *hunter2\n",
            "line 5",
        ),
        ("a tab", "- name: a\n\ttoken: hunter2\n", "line 4"),
    ] {
        let error = load_with("--cloud-config=FILE", &format!("{ours}{rest}"), None).unwrap_err();
        assert!(
            error.starts_with("\"FILE\" is wrong:\n") && error.contains(place),
            "{case}: {error}"
        );
        assert!(error.contains("is not YAML"), "{case}: {error}");
        assert!(!error.contains("hunter2"), "{case}: {error}");
    }
    let theirs = load_with("--cloud-provider=hcloud --cloud-config=FILE", "{", None);
    assert!(
        theirs.is_ok(),
        "a file of a Go CCM is its provider's to read"
    );
}
