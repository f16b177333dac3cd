//! What a finding is.

use std::fmt;

use serde::{Serialize, Serializer};

/// How bad a finding is. The worst one decides about the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something will not work, or works by luck.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// Its name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a finding is about, in the order in which an expert would look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Area {
    /// The API server, and what may be read of it.
    ApiServer,
    /// Flags and configuration files.
    Configuration,
    /// The cloud-controller-manager itself: Pods, lease, permissions.
    Manager,
    /// The clouds: credentials, permissions, budgets.
    Clouds,
    /// Nodes and kubelets.
    Nodes,
    /// Routes of Pod networks.
    Routes,
    /// Services and their load balancers.
    Services,
}

impl Area {
    /// All of them, in their order.
    pub const ALL: [Self; 7] = [
        Self::ApiServer,
        Self::Configuration,
        Self::Manager,
        Self::Clouds,
        Self::Nodes,
        Self::Routes,
        Self::Services,
    ];

    /// Its heading.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiServer => "API server",
            Self::Configuration => "Configuration",
            Self::Manager => "Cloud-controller-manager",
            Self::Clouds => "Clouds",
            Self::Nodes => "Nodes",
            Self::Routes => "Routes",
            Self::Services => "Services",
        }
    }
}

/// A kind of finding: the row of it in the catalogue.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its stable ID.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub area: Area,
    /// What you see.
    pub symptom: &'static str,
    /// Why it matters, or why it is so.
    pub why: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// Something that is wrong, or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub rule: &'static Rule,
    /// What it is about, such as `Node web-1`.
    pub object: String,
    /// What was found, with the values.
    pub what: String,
    /// The command or the change that fixes it.
    pub fix: String,
}

impl Rule {
    /// A finding of this kind, with the remedy of the catalogue.
    pub fn found(&'static self, object: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding {
            rule: self,
            object: object.into(),
            what: what.into(),
            fix: self.remedy.to_owned(),
        }
    }
}

impl Finding {
    /// With this remedy instead, which names the object.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = fix.into();
        self
    }

    /// Its ID.
    pub const fn id(&self) -> &'static str {
        self.rule.id
    }

    /// How bad it is.
    pub const fn severity(&self) -> Severity {
        self.rule.severity
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            id: &'a str,
            severity: Severity,
            area: Area,
            object: &'a str,
            what: &'a str,
            why: &'a str,
            fix: &'a str,
        }
        Row {
            id: self.rule.id,
            severity: self.rule.severity,
            area: self.rule.area,
            object: &self.object,
            what: &self.what,
            why: self.rule.why,
            fix: &self.fix,
        }
        .serialize(serializer)
    }
}
