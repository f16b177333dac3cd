//! `cloudkeel version`

use std::io::Write;

use clap::Args;
use cloudkeel_api::Registry;
use serde::Serialize;

use super::{CommandError, OutputArgs, OutputFormat};
use crate::metrics::{COMMIT, KUBERNETES_VERSION};

/// Arguments of `cloudkeel version`.
#[derive(Debug, Args)]
pub struct VersionArgs {
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Versions {
    #[serde(rename = "version")]
    cloudkeel: &'static str,
    /// `null` if the build did not set it.
    commit: Option<&'static str>,
    #[serde(rename = "kubernetesVersion")]
    kubernetes: &'static str,
    clouds: Vec<&'static str>,
}

pub(super) fn run(
    args: &VersionArgs,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let descriptors = registry.descriptors();
    let versions = Versions {
        cloudkeel: concat!("v", env!("CARGO_PKG_VERSION")),
        commit: COMMIT,
        kubernetes: KUBERNETES_VERSION,
        clouds: descriptors.iter().map(|cloud| cloud.name).collect(),
    };
    match args.output.output {
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&versions)?)?,
        OutputFormat::Text => {
            writeln!(out, "cloudkeel   {}", versions.cloudkeel)?;
            writeln!(out, "commit      {}", versions.commit.unwrap_or("unknown"))?;
            writeln!(out, "kubernetes  {}", versions.kubernetes)?;
            writeln!(out, "clouds      {}", versions.clouds.join(", "))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(output: OutputFormat) -> String {
        let args = VersionArgs {
            output: OutputArgs { output },
        };
        let mut out = Vec::new();
        run(&args, &Registry::new(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_forms_show_the_same() {
        let json: serde_json::Value = serde_json::from_str(&printed(OutputFormat::Json)).unwrap();
        let text = printed(OutputFormat::Text);
        let values: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().nth(1).unwrap_or_default())
            .collect();
        let commit = json["commit"].as_str().unwrap_or("unknown");
        let expected = [
            json["version"].as_str().unwrap(),
            commit,
            json["kubernetesVersion"].as_str().unwrap(),
            "",
        ];
        assert_eq!(values, expected, "{text}");
        assert_eq!(json["clouds"], serde_json::json!([]));
    }
}
