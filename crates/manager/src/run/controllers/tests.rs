use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, CloudProvider, Descriptor, ProviderContext, ProviderFactory, ProviderInput,
    SystemClock,
};

use super::*;
use crate::flags::{FlagTable, parse};

/// Stands for a CCM that allocates Pod CIDRs itself, or for one that does not.
struct StandIn {
    name: &'static str,
    allocates: bool,
}

#[async_trait]
impl ProviderFactory for StandIn {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            name: self.name,
            summary: "A stand-in.",
            replaces: &[],
            capabilities: vec![],
            keys: vec![],
        }
    }

    fn allocates_pod_cidrs(&self) -> bool {
        self.allocates
    }

    async fn build(
        &self,
        _input: ProviderInput,
        _context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        Err(Problems::new().into())
    }
}

struct Bare(&'static str);

impl CloudProvider for Bare {
    fn name(&self) -> &str {
        self.0
    }
}

#[test]
fn pod_networks_are_handed_out_where_the_go_ccm_does_it_or_where_it_is_asked_for_by_name() {
    let registry = [("gce", true), ("hcloud", false)]
        .into_iter()
        .fold(Registry::new(), |registry, (name, allocates)| {
            registry.with(StandIn { name, allocates }).unwrap()
        });
    for (case, provider, flags, runs) in [
        ("as the chart of GCE", "gce", "--allocate-node-cidrs", true),
        ("not enabled", "gce", "", false),
        (
            "enabled, but not this one",
            "gce",
            "--allocate-node-cidrs --controllers=*,-node-ipam-controller",
            false,
        ),
        (
            "as the chart of Hetzner",
            "hcloud",
            "--allocate-node-cidrs",
            false,
        ),
        (
            "asked for by name",
            "hcloud",
            "--allocate-node-cidrs --controllers=*,node-ipam-controller",
            true,
        ),
    ] {
        let line = parse(&FlagTable::new(&[]), flags.split_whitespace()).unwrap();
        let options = Options::read(&line, &[]).unwrap();
        let selection = ControllerSelection::new(&options.generic.controllers, &[]).unwrap();
        let cloud = Cloud::new("c", Arc::new(Bare(provider)), None, Arc::new(SystemClock));
        let enabled = enabled(&selection, &options, &[cloud], &registry);
        let names_it = enabled.contains(&ControllerName::NodeIpam);
        assert_eq!(names_it, runs, "{case}");
    }
}
