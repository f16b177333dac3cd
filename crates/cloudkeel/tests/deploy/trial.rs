//! A manager that may do exactly what it is granted.

use cloudkeel_testkit::cluster::Unmet;
use cloudkeel_testkit::cluster::try_eventually;
use serde_json::Value;

use crate::account::Account;
use crate::harness::{DEADLINE, Manager, World};
use crate::permissions::{Grant, documents, granted_to, manifests};

/// The lease that the roles name.
const LEASE: &str = "cloud-controller-manager";

/// What cloudkeel's own account gets by these files of `rbac/`.
pub(crate) fn own_grants(files: &[&str]) -> Vec<Grant> {
    let folder = manifests().join("rbac");
    let documents: Vec<_> = files
        .iter()
        .flat_map(|file| documents(&folder.join(format!("{file}.yaml"))))
        .collect();
    granted_to("cloudkeel", &documents)
}

/// A ServiceAccount in a world.
pub(crate) struct Trial {
    pub(crate) world: World,
    pub(crate) account: Account,
}

impl Trial {
    /// A new account with these grants, in a new world.
    pub(crate) async fn new(grants: &[Grant]) -> Self {
        let mut world = World::new().await;
        let account = Account::create(&world.client).await;
        let grants: Vec<_> = grants
            .iter()
            .map(|grant| for_lease(grant, &world.id))
            .collect();
        account.grant(&grants).await;
        world.kubeconfig = account.kubeconfig().await;
        Self { world, account }
    }

    /// A manager under that account.
    pub(crate) fn start(&self, flags: &[impl AsRef<str>]) -> Manager {
        let mut all: Vec<&str> = flags.iter().map(AsRef::as_ref).collect();
        all.push("--logging-format=json");
        self.world.start(&all)
    }
}

/// Roles name the lease; every world has one of its own.
fn for_lease(grant: &Grant, lease: &str) -> Grant {
    let mut grant = grant.clone();
    if let Grant::Own { rules, .. } = &mut grant {
        let names = rules.iter_mut().flat_map(|rule| &mut rule.resource_names);
        for name in names.flatten().filter(|name| *name == LEASE) {
            lease.clone_into(name);
        }
    }
    grant
}

/// The lines of a log that warn, or worse, in one text each.
pub(crate) fn warnings(manager: &Manager) -> Vec<String> {
    let log = manager.log();
    let is_serious = |line: &Value| matches!(line["level"].as_str(), Some("WARN" | "ERROR"));
    // The last line may be on its way still.
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .filter(is_serious)
        .map(|line| text_of(&line))
        .collect()
}

fn text_of(line: &Value) -> String {
    let fields = line.as_object().expect("an object").values();
    let texts: Vec<_> = fields.filter_map(Value::as_str).collect();
    texts.join(" ")
}

/// Waits for a warning that has all these parts.
pub(crate) async fn warns(manager: &Manager, parts: &[&str]) -> Result<(), Unmet> {
    let what = format!("a warning with {parts:?}");
    try_eventually(&what, DEADLINE, || async {
        let warnings = warnings(manager);
        let is_it = |text: &String| parts.iter().all(|part| text.contains(part));
        if warnings.iter().any(is_it) {
            Ok(true)
        } else {
            Err(format!("{warnings:#?}"))
        }
    })
    .await
}
