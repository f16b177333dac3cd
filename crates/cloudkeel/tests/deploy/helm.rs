//! helm, as used for an installation of our chart.

use std::path::PathBuf;
use std::process::Command;

use cloudkeel_testkit::control_plane::{Tool, provide};
use serde_json::Value;
use tempfile::TempDir;

use crate::kubectl::{Said, said};
use crate::permissions::parse;

/// The folder of the chart.
pub(crate) fn chart() -> PathBuf {
    crate::harness::package().join("../../deploy/chart/cloudkeel")
}

/// helm, without the settings of this user.
pub(crate) struct Helm {
    program: PathBuf,
    home: TempDir,
}

impl Helm {
    pub(crate) async fn new() -> Self {
        Self {
            program: provide(Tool::Helm).await.expect("helm").path,
            home: TempDir::new().expect("a temporary folder"),
        }
    }

    /// Checks the chart with these values.
    pub(crate) fn lint(&self, values: &Value) -> Said {
        self.run(&["lint", "--strict"], &["--namespace=kube-system"], values)
    }

    /// The text that an installation with these values applies, or of one template alone.
    pub(crate) fn render(&self, values: &Value, only: Option<&str>) -> Said {
        let only = only.map(|template| format!("--show-only=templates/{template}"));
        let mut flags = vec!["--namespace=kube-system"];
        flags.extend(only.as_deref());
        self.template(&flags, values)
    }

    /// The objects of an installation with these values.
    pub(crate) fn objects(&self, values: &Value) -> Vec<Value> {
        parse(&self.render(values, None).ok().stdout)
    }

    /// What `helm template` makes of these flags.
    pub(crate) fn template(&self, flags: &[&str], values: &Value) -> Said {
        self.run(&["template", "cloudkeel"], flags, values)
    }

    fn run(&self, command: &[&str], flags: &[&str], values: &Value) -> Said {
        let file = self.home.path().join("values.json");
        std::fs::write(&file, values.to_string()).expect("the file is written");
        let mut run = Command::new(&self.program);
        run.args(command).arg(chart()).args(flags);
        run.arg("--values").arg(&file);
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            run.env(variable, self.home.path());
        }
        run.env_remove("KUBECONFIG");
        said(&run.output().expect("helm runs"))
    }
}
