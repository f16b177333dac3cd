//! Leader migration: moving controllers between components without two of them ever running at once.
//!
//! A file of the kind `LeaderMigrationConfiguration` lists controllers. Those that it does not list run under the
//! main lease. Those that it lists for this component run under a second lease that all components share; only the
//! holder of the main lease is a candidate for it. The rest run elsewhere.
//!
//! The Go framework compares the listed names with canonical names only, so its own default list matches neither the
//! service nor the route controller: both run under the main lease there, beside another component that may run them
//! under the migration lease. Here every former name of a controller is accepted.

use cloudkeel_api::{ConfigKey, ConfigReader, KeyValue, Problem, Problems};
use cloudkeel_controllers::ControllerName;
use serde_json::Value;

/// The name of this component in a migration.
pub const COMPONENT: &str = "cloud-controller-manager";

const GROUP: &str = "controllermanager.config.k8s.io";
const KIND: &str = "LeaderMigrationConfiguration";

const API_VERSION: ConfigKey<Version> = ConfigKey::new(
    "apiVersion",
    "The version of the file: `v1alpha1`, `v1beta1` or `v1` of the group.",
)
.required();
const FILE_KIND: ConfigKey<Kind> = ConfigKey::new("kind", "The kind of the file.").required();
const LEADER_NAME: ConfigKey<NotEmpty> = ConfigKey::new(
    "leaderName",
    "The name of the lease that all components share.",
)
.required();
const RESOURCE_LOCK: ConfigKey<Lock> = ConfigKey::new(
    "resourceLock",
    "The kind of the lock. Version v1 has no such key.",
);
const CONTROLLER_LEADERS: ConfigKey<List> = ConfigKey::new(
    "controllerLeaders",
    "Which component runs which controller, under the shared lease.",
);
const NAME: ConfigKey<NotEmpty> = ConfigKey::new("name", "The controller.").required();
const COMPONENT_KEY: ConfigKey<NotEmpty> = ConfigKey::new(
    "component",
    "The component that runs it; `*` for the holder of the lease.",
)
.required();

/// Under which lease a controller runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsUnder {
    /// The main one.
    MainLease,
    /// The one that is shared with other components.
    MigrationLease,
    /// Not in this process.
    AnotherComponent,
}

/// Which controllers take part in a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderMigration {
    /// The name of the shared lease. Its namespace, its durations and our identity are those of the main one.
    pub lease_name: String,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    controller: String,
    component: String,
}

/// The default without a file: the three controllers that moved out of kube-controller-manager, run by the lease's
/// holder.
impl Default for LeaderMigration {
    fn default() -> Self {
        let moved = [
            "route-controller",
            "service-controller",
            "cloud-node-lifecycle-controller",
        ];
        let entry = |name: &str| Entry {
            controller: canonical(name).to_owned(),
            component: "*".to_owned(),
        };
        Self {
            lease_name: "cloud-provider-extraction-migration".to_owned(),
            entries: moved.map(entry).to_vec(),
        }
    }
}

impl LeaderMigration {
    /// Reads a file and reports all problems.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        let file: Value = serde_saphyr::from_str(text)
            .map_err(|error| Problem::new("--leader-migration-config", error.to_string()))?;
        let mut reader = ConfigReader::new(&file);
        let version = reader.get(&API_VERSION);
        reader.get(&FILE_KIND);
        let lease_name = reader.get(&LEADER_NAME);
        if version.is_none_or(|version| version != Version::V1) {
            reader.get(&RESOURCE_LOCK);
        }
        let listed = reader
            .get(&CONTROLLER_LEADERS)
            .map_or(Vec::new(), |list| list.0);
        let mut entries = Vec::new();
        for (index, listed) in listed.iter().enumerate() {
            match read_entry(listed) {
                Ok(entry) => entries.push(entry),
                Err(problems) => note_under(&mut reader, index, &problems),
            }
        }
        reader.finish(|| {
            let lease_name = lease_name?.0;
            Some(Self {
                lease_name,
                entries,
            })
        })
    }

    /// Where a controller runs, by any of its names. If it is listed twice, the last one counts.
    pub fn runs_under(&self, controller: &str) -> RunsUnder {
        let name = canonical(controller);
        let entry = self.entries.iter().rfind(|entry| entry.controller == name);
        match entry.map(|entry| entry.component.as_str()) {
            None => RunsUnder::MainLease,
            Some("*" | COMPONENT) => RunsUnder::MigrationLease,
            Some(_) => RunsUnder::AnotherComponent,
        }
    }
}

/// The canonical name of a controller, whichever of its names is given.
fn canonical(name: &str) -> &str {
    ControllerName::find(name).map_or(name, |controller| controller.canonical())
}

fn read_entry(listed: &Value) -> Result<Entry, Problems> {
    if !listed.is_object() {
        let expected = "a map with `name` and `component`";
        return Err(Problem::unexpected("", listed.to_string(), expected).into());
    }
    let mut reader = ConfigReader::new(listed);
    let name = reader.get(&NAME);
    let component = reader.get(&COMPONENT_KEY);
    reader.finish(|| {
        Some(Entry {
            controller: canonical(&name?.0).to_owned(),
            component: component?.0,
        })
    })
}

fn note_under(reader: &mut ConfigReader<'_>, index: usize, problems: &Problems) {
    for problem in problems.iter() {
        let place = format!("controllerLeaders[{index}].{}", problem.key);
        reader.note(Problem {
            key: place.trim_end_matches('.').to_owned(),
            ..problem.clone()
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    Earlier,
}

impl KeyValue for Version {
    const TYPE: &'static str = "choice";

    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((GROUP, "v1")) => Ok(Self::V1),
            Some((GROUP, "v1alpha1" | "v1beta1")) => Ok(Self::Earlier),
            _ => Err(format!(
                "`{GROUP}/v1`, `{GROUP}/v1beta1` or `{GROUP}/v1alpha1`"
            )),
        }
    }
}

struct Kind;

impl KeyValue for Kind {
    const TYPE: &'static str = "choice";

    fn parse(text: &str) -> Result<Self, String> {
        if text == KIND {
            Ok(Self)
        } else {
            Err(format!("`{KIND}`"))
        }
    }
}

struct Lock;

impl KeyValue for Lock {
    const TYPE: &'static str = "choice";

    fn parse(text: &str) -> Result<Self, String> {
        if text == "leases" {
            Ok(Self)
        } else {
            Err("`leases`, the only kind of lock that is left".to_owned())
        }
    }
}

struct NotEmpty(String);

impl KeyValue for NotEmpty {
    const TYPE: &'static str = "text";

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Err("a name".to_owned())
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

struct List(Vec<Value>);

impl KeyValue for List {
    const TYPE: &'static str = "list";

    fn parse(_text: &str) -> Result<Self, String> {
        Err("a list of `name` and `component`".to_owned())
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        match value {
            Value::Array(items) => Ok(Self(items.clone())),
            _ => Self::parse(""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RunsUnder::{AnotherComponent, MainLease, MigrationLease};

    fn file(version: &str, rest: &str) -> String {
        format!(
            "apiVersion: controllermanager.config.k8s.io/{version}\n\
             kind: LeaderMigrationConfiguration\n{rest}"
        )
    }

    #[test]
    fn every_version_of_the_file_is_read() {
        for (version, lock) in [
            ("v1alpha1", "resourceLock: leases\n"),
            ("v1beta1", "resourceLock: leases\n"),
            ("v1beta1", ""),
            ("v1", ""),
        ] {
            let text = file(
                version,
                &format!(
                    "leaderName: moving\n{lock}\
                     controllerLeaders:\n\
                     - {{name: service-lb-controller, component: kube-controller-manager}}\n\
                     - name: node-route-controller\n  component: cloud-controller-manager\n"
                ),
            );
            let migration = LeaderMigration::parse(&text).unwrap();
            assert_eq!(migration.lease_name, "moving", "{version}");
            for (controller, runs_under) in [
                ("service-lb-controller", AnotherComponent),
                ("node-route-controller", MigrationLease),
                ("cloud-node-controller", MainLease),
            ] {
                let found = migration.runs_under(controller);
                assert_eq!(found, runs_under, "{version} {controller}");
            }
        }
    }

    #[test]
    fn an_empty_list_leaves_everything_under_the_main_lease() {
        for list in ["", "controllerLeaders: []\n", "controllerLeaders:\n"] {
            let text = file("v1", &format!("leaderName: moving\n{list}"));
            let migration = LeaderMigration::parse(&text).unwrap();
            assert_eq!(migration.runs_under("service"), MainLease, "{list:?}");
        }
    }

    #[test]
    fn every_name_of_a_controller_means_the_same_controller() {
        let names = ["service", "service-controller", "service-lb-controller"];
        for listed in names {
            let entry = format!("controllerLeaders: [{{name: {listed}, component: \"*\"}}]\n");
            let text = file("v1", &format!("leaderName: moving\n{entry}"));
            let migration = LeaderMigration::parse(&text).unwrap();
            for asked in names {
                assert_eq!(
                    migration.runs_under(asked),
                    MigrationLease,
                    "{listed} {asked}"
                );
            }
            assert_eq!(migration.runs_under("route"), MainLease, "{listed}");
        }
    }

    #[test]
    fn the_default_catches_all_three_controllers_that_moved() {
        let migration = LeaderMigration::default();
        assert_eq!(migration.lease_name, "cloud-provider-extraction-migration");
        for (controller, runs_under) in [
            ("service-lb-controller", MigrationLease),
            ("node-route-controller", MigrationLease),
            ("cloud-node-lifecycle-controller", MigrationLease),
            ("cloud-node-controller", MainLease),
            ("node-ipam-controller", MainLease),
            ("a-controller-of-a-provider", MainLease),
        ] {
            assert_eq!(migration.runs_under(controller), runs_under, "{controller}");
        }
    }

    #[test]
    fn a_controller_that_is_listed_twice_counts_as_listed_last() {
        let text = file(
            "v1",
            "leaderName: moving\n\
             controllerLeaders:\n\
             - {name: service, component: kube-controller-manager}\n\
             - {name: service-lb-controller, component: \"*\"}\n",
        );
        let migration = LeaderMigration::parse(&text).unwrap();
        assert_eq!(migration.runs_under("service"), MigrationLease);
    }

    #[test]
    fn everything_wrong_is_reported_at_once() {
        let text = "apiVersion: controllermanager.config.k8s.io/v2\n\
                    kind: LeaderMigration\n\
                    leaderName: \"\"\n\
                    resourceLock: endpoints\n\
                    leaders: []\n\
                    controllerLeaders:\n\
                    - {name: service}\n\
                    - {name: route, component: \"*\", componnet: x}\n\
                    - everything\n";
        let problems = LeaderMigration::parse(text).unwrap_err().to_string();
        let expected = [
            "apiVersion: \"controllermanager.config.k8s.io/v2\": expected \
             `controllermanager.config.k8s.io/v1`, `controllermanager.config.k8s.io/v1beta1` or \
             `controllermanager.config.k8s.io/v1alpha1`",
            "kind: \"LeaderMigration\": expected `LeaderMigrationConfiguration`",
            "leaderName: \"\": expected a name",
            "resourceLock: \"endpoints\": expected `leases`, the only kind of lock that is left",
            "controllerLeaders[0].component: is required",
            "controllerLeaders[1].componnet: is not a known key: did you mean `component`?",
            "controllerLeaders[2]: \"\\\"everything\\\"\": expected a map with `name` and `component`",
            "leaders: is not a known key",
        ];
        for problem in expected {
            assert!(
                problems.contains(problem),
                "{problem:?} is missing in:\n{problems}"
            );
        }
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        for (case, text, problem) in [
            ("empty", String::new(), "apiVersion: is required"),
            (
                "a key twice",
                file("v1", "leaderName: a\nleaderName: b\n"),
                "leaderName",
            ),
            (
                "a lock in a version without one",
                file("v1", "leaderName: a\nresourceLock: leases\n"),
                "resourceLock: is not a known key",
            ),
            (
                "another list",
                file("v1", "leaderName: a\ncontrollerLeaders: service\n"),
                "controllerLeaders: \"service\": expected a list of `name` and `component`",
            ),
            ("not YAML", "{".to_owned(), "--leader-migration-config: "),
        ] {
            let problems = LeaderMigration::parse(&text).unwrap_err().to_string();
            assert!(problems.contains(problem), "{case}: {problems}");
        }
    }
}
