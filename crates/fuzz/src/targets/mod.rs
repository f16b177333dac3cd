//! The fuzz targets: everything that parses external input.

#![expect(
    clippy::expect_used,
    reason = "a fuzzer that cannot set up what it tests cannot go on"
)]

mod answers;
mod aws;
mod cluster;
mod message;
mod protobuf;
mod rest;
mod services;
mod settings;
mod texts;
mod vsphere;

use std::borrow::Cow;

use cloudkeel_api::{NodeFacts, Registry};
use cloudkeel_provider_aws::AwsFactory;
use cloudkeel_provider_digitalocean::DigitalOceanFactory;
use cloudkeel_provider_hetzner::HetznerFactory;
use cloudkeel_provider_local::LocalFactory;
use cloudkeel_provider_openstack::OpenStackFactory;
use cloudkeel_provider_vsphere::VSphereFactory;
use tokio::runtime::Runtime;

use crate::target::{Reader, Target};

/// All of them.
pub fn all() -> Vec<Target> {
    [
        texts::TARGETS,
        settings::TARGETS,
        cluster::TARGETS,
        protobuf::TARGETS,
        services::TARGETS,
        rest::TARGETS,
        answers::TARGETS,
    ]
    .concat()
}

/// Time that passes only when there is nothing to do.
fn paused() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build();
    runtime.expect("a runtime")
}

fn text(input: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(input)
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A target of which nothing more is known than that it has to take everything.
fn just(mut read: impl FnMut(&[u8]) + 'static) -> Reader {
    Box::new(move |input| {
        read(input);
        Ok(())
    })
}

fn no_words() -> Vec<String> {
    Vec::new()
}

/// All providers, as the binary has them: a test compares them with its table.
fn registry() -> Registry {
    let registry = Registry::new().with(DigitalOceanFactory::default());
    let registry = registry.expect("one provider");
    let registry = registry.with(HetznerFactory::default()).expect("two");
    let registry = registry.with(LocalFactory::default()).expect("three");
    let registry = registry.with(VSphereFactory::default()).expect("four");
    let registry = registry.with(AwsFactory::default()).expect("five");
    registry.with(OpenStackFactory::default()).expect("six")
}

/// The Node of a machine, as the node controller would have initialised it.
fn node_of(instance: &cloudkeel_api::Instance) -> NodeFacts {
    NodeFacts {
        name: instance.name.clone(),
        uid: format!("uid-{}", instance.name),
        provider_id: Some(instance.id.clone()),
        addresses: instance.addresses.clone(),
        ..NodeFacts::default()
    }
}

/// What the fuzzer found, so that it stays mended.
#[cfg(test)]
mod found {
    use super::*;
    use crate::guard::Guard;

    #[test]
    fn what_was_once_broken_is_not() {
        for (name, input) in [
            ("duration", "206004000040744000s".to_owned()),
            (
                "local-answers",
                "7\nx-project\n\n{\"items\":[],\"page\":{\"number\":18446744073709551615,\"perPage\":0,\"total\":0}}"
                    .to_owned(),
            ),
            ("redaction", "a:\n ".repeat(10_000)),
        ] {
            let target = all().into_iter().find(|target| target.name == name);
            let broken = Guard::new(target.unwrap()).read(input.as_bytes());
            assert_eq!(broken, None, "{name}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::guard::Guard;

    /// The crates of providers that a source file names.
    fn provider_crates(source: &str) -> BTreeSet<&str> {
        let parts = source.split("cloudkeel_provider_").skip(1);
        let is_outside = |letter: char| letter != '_' && !letter.is_ascii_alphanumeric();
        let names = parts.filter_map(|part| part.split(is_outside).next());
        names.filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn the_registry_has_every_provider_of_the_binary() {
        let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../cloudkeel/src/providers.rs");
        let table = std::fs::read_to_string(table).expect("the table of the binary");
        let of_binary = provider_crates(&table);
        assert!(of_binary.len() > 1, "{of_binary:?}");
        assert_eq!(provider_crates(include_str!("mod.rs")), of_binary);
    }

    #[test]
    fn robot_is_asked_too() {
        let examples = answers::TARGETS
            .iter()
            .find(|it| it.name == "hcloud-answers");
        let examples = (examples.expect("a target").examples)();
        let is_of_robot = |example: &&Vec<u8>| text(example).contains("server_number");
        // Its list, and what is asked of each of its servers.
        assert!(examples.iter().filter(is_of_robot).count() > 1);
    }

    #[test]
    fn the_answers_of_every_provider_are_a_target() {
        for provider in registry().names() {
            let name = format!("{provider}-answers");
            let is_fuzzed = answers::TARGETS.iter().any(|target| target.name == name);
            assert!(is_fuzzed, "{name} is no row of answers::TARGETS");
        }
    }

    #[test]
    fn every_target_has_a_name_of_its_own_and_takes_its_examples() {
        let targets = all();
        let names: BTreeSet<_> = targets.iter().map(|target| target.name).collect();
        assert_eq!(names.len(), targets.len());
        for target in targets {
            let examples = (target.examples)();
            assert!(!examples.is_empty(), "{}", target.name);
            let mut guard = Guard::new(target);
            for example in examples {
                let broken = guard.read(&example);
                let text = text(&example);
                assert_eq!(broken, None, "{}: {text}", target.name);
            }
        }
    }
}
