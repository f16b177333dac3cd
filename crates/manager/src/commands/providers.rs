//! `cloudkeel providers`

use std::fmt::Write as _;
use std::io::Write;

use clap::Args;
use cloudkeel_api::{Descriptor, KeyPlace, Registry};

use super::{CommandError, OutputArgs, OutputFormat, Screen};

/// Arguments of `cloudkeel providers`.
#[derive(Debug, Args)]
pub struct ProvidersArgs {
    /// Only this one, with all its keys.
    name: Option<String>,
    /// Only the names of the programs that are replaced, one per line: what an image links to this one.
    #[arg(long)]
    replaces: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(
    args: &ProvidersArgs,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let descriptors = match &args.name {
        Some(name) => {
            let factory = registry.get(name);
            let factory = factory.map_err(|error| CommandError::NotFound(error.to_string()))?;
            vec![factory.descriptor()]
        }
        None => registry.descriptors(),
    };
    if args.replaces {
        let names = descriptors
            .iter()
            .flat_map(|descriptor| descriptor.replaces);
        for name in names {
            writeln!(out, "{name}")?;
        }
        return Ok(());
    }
    match (args.output.output, args.name.is_some()) {
        (OutputFormat::Json, _) => {
            writeln!(out, "{}", serde_json::to_string_pretty(&descriptors)?)?;
        }
        (OutputFormat::Text, false) => write!(out, "{}", overview(&descriptors, Screen::detect()))?,
        (OutputFormat::Text, true) => {
            for descriptor in &descriptors {
                write!(out, "{}", details(descriptor, Screen::detect()))?;
            }
        }
    }
    Ok(())
}

fn overview(descriptors: &[Descriptor], screen: Screen) -> String {
    let mut rows = vec![
        ["NAME", "REPLACES", "CAN", "SUMMARY"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(descriptors.iter().map(|descriptor| {
        vec![
            descriptor.name.to_owned(),
            dash_if_empty(descriptor.replaces.join(", ")),
            capabilities(descriptor),
            descriptor.summary.to_owned(),
        ]
    }));
    let hint = screen.faint("cloudkeel providers NAME shows all keys of one.\n");
    format!("{}\n{hint}", screen.table(&rows))
}

fn details(descriptor: &Descriptor, screen: Screen) -> String {
    let mut text = format!(
        "{}\n{}\nCan: {}\n",
        screen.heading(descriptor.name),
        descriptor.summary,
        capabilities(descriptor)
    );
    for (place, heading) in [
        (KeyPlace::Config, "Configuration"),
        (KeyPlace::Env, "Environment"),
        (KeyPlace::File, "File of --cloud-config"),
        (KeyPlace::Flag, "Flags"),
        (KeyPlace::Annotation, "Annotations"),
    ] {
        let mut rows = vec![
            ["KEY", "TYPE", "DEFAULT", "MEANING"]
                .map(str::to_owned)
                .to_vec(),
        ];
        rows.extend(
            descriptor
                .keys
                .iter()
                .filter(|key| key.place == place)
                .map(|key| {
                    let default = if key.required {
                        "required"
                    } else {
                        key.default.unwrap_or("-")
                    };
                    [key.name, key.value_type, default, key.help]
                        .map(str::to_owned)
                        .to_vec()
                }),
        );
        if rows.len() > 1 {
            let _ = write!(
                text,
                "\n{}\n{}",
                screen.heading(heading),
                screen.table(&rows)
            );
        }
    }
    text
}

fn capabilities(descriptor: &Descriptor) -> String {
    let names = descriptor
        .capabilities
        .iter()
        .map(|capability| capability.as_str());
    dash_if_empty(names.collect::<Vec<_>>().join(", "))
}

fn dash_if_empty(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{
        AnnotationKey, Capability, ConfigKey, Documented as _, EnvKey, FlagKey, Secret,
    };

    use super::*;

    #[test]
    fn one_provider_is_shown_with_everything_it_understands() {
        let descriptor = Descriptor {
            name: "cloud",
            summary: "A cloud.",
            replaces: &["cloud-ccm"],
            capabilities: vec![Capability::Instances, Capability::Routes],
            keys: vec![
                ConfigKey::<String>::new("network", "The network.")
                    .required()
                    .doc(),
                EnvKey::<Secret>::new("CLOUD_TOKEN", "Credential.").doc(),
                FlagKey::<String>::new("user-agent", "Put in front.").doc(),
                AnnotationKey::<bool>::new("cloud/proxy", "PROXY protocol.").doc(),
            ],
        };
        let shown = details(&descriptor, Screen::plain());
        for expected in [
            "Can: instances, routes",
            "Configuration\n",
            "network",
            "required",
            "Environment\n",
            "CLOUD_TOKEN",
            "Flags\n",
            "user-agent",
            "Annotations\n",
            "cloud/proxy",
        ] {
            assert!(shown.contains(expected), "{expected:?} in {shown}");
        }
        let row = overview(&[descriptor], Screen::plain());
        assert!(row.contains("cloud-ccm"), "{row}");
    }
}
