//! The settings of AWS: `cloud.conf` of the Go CCM, or our own form.

mod endpoint;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cloudkeel_api::{
    ConfigSource, Documented as _, FlagKey, FlagValues, IpFamily, KeyDoc, Problem, Problems,
    ProviderInput, Secret,
};
use cloudkeel_toolkit::settings::{Ini, by_name};
use cloudkeel_toolkit::{Setting, Settings, SettingsReader, keywords, settings};
use regex::Regex;

pub use self::endpoint::Override;

/// The instance types whose place in the network has to be known before their Nodes are used.
const TOPOLOGY_TYPES: &str = r"^(hpc|trn|p)[0-9]+[a-z]*(-[a-z0-9]+)?(\.[0-9a-z]*)$";

keywords! {
    /// What the health checks of `Cluster` Services ask.
    pub enum ProbeMode (exact) {
        /// The Service's own node port.
        ServiceNodePort = "ServiceNodePort",
        /// kube-proxy's endpoint, which all Services of a Node share.
        Shared = "Shared",
    }
}

keywords! {
    /// Which security groups network load balancers have.
    pub enum GroupMode (exact) {
        /// One of their own, with rules for their ports.
        Managed = "Managed",
    }
}

keywords! {
    /// What a Service without the `type` annotation gets.
    #[derive(Default)]
    pub enum BalancerType {
        /// A classic load balancer.
        #[default]
        Classic = "classic",
        /// A network load balancer.
        Nlb = "nlb",
    }
}

impl BalancerType {
    /// The one that this is not.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Classic => Self::Nlb,
            Self::Nlb => Self::Classic,
        }
    }
}

keywords! {
    /// A family of addresses of Nodes.
    pub enum NodeIpFamily {
        /// IPv4.
        Ipv4 = "ipv4",
        /// IPv6.
        Ipv6 = "ipv6",
    }
}

settings! {
    /// The settings.
    pub struct Config {
        /// The zone of the control plane; its region is used.
        pub zone: Option<String> = Setting::key("zone").ini("Global.Zone").non_empty(),
        /// The region, if no zone is set. Without both, `AWS_REGION`, else the metadata service decides.
        pub region: Option<String> = Setting::key("region").ini("Global.Region").non_empty(),
        /// The VPC of the cluster. Together with a cluster ID and either a subnet or a role, it lets the program
        /// run anywhere; else it has to run on an instance of the cluster.
        pub vpc: Option<String> = Setting::key("vpc").ini("Global.VPC").non_empty(),
        /// A subnet of the cluster, for load balancers in a VPC without tagged subnets.
        pub subnet_id: Option<String> = Setting::key("subnetId").ini("Global.SubnetID").non_empty(),
        /// The route table for Pod routes. Without it, the one with the cluster's tag.
        pub route_table_id: Option<String> = Setting::key("routeTableId").ini("Global.RouteTableID").non_empty(),
        /// A role to assume for all calls.
        pub role_arn: Option<String> = Setting::key("roleArn").ini("Global.RoleARN").non_empty(),
        /// The resource that the role is assumed for, against confused deputies.
        pub source_arn: Option<String> = Setting::key("sourceArn").ini("Global.SourceARN").non_empty(),
        /// The cluster's ID in tags of the old form (`KubernetesCluster=<id>`), which are then written too.
        pub legacy_cluster_tag: Option<String> = Setting::key("legacyClusterTag")
            .ini("Global.KubernetesClusterTag").non_empty(),
        /// The cluster's ID in tags: `kubernetes.io/cluster/<id>`. Without it, the tags of the own instance.
        pub cluster_id: Option<String> = Setting::key("clusterId").ini("Global.KubernetesClusterID").non_empty(),
        /// Whether the security groups of Nodes are left alone. You then have to let load balancers in yourself.
        pub disable_security_group_ingress: bool = Setting::key("disableSecurityGroupIngress").default("false")
            .ini("Global.DisableSecurityGroupIngress"),
        /// A security group for all classic load balancers, in place of one for each. It is never changed.
        pub elb_security_group: Option<String> = Setting::key("elbSecurityGroup")
            .ini("Global.ElbSecurityGroup").non_empty(),
        /// Which addresses Nodes get, in this order.
        pub node_ip_families: Vec<NodeIpFamily> = Setting::key("nodeIpFamilies").ini("Global.NodeIPFamilies")
            .default("ipv4"),
        /// What health checks of Services with the traffic policy `Cluster` ask.
        pub probe_mode: Option<ProbeMode> = Setting::key("healthProbe.mode")
            .ini("Global.ClusterServiceLoadBalancerHealthProbeMode"),
        /// The port of the shared health check.
        pub probe_port: u16 = Setting::key("healthProbe.port").default("10256")
            .ini("Global.ClusterServiceSharedLoadBalancerHealthProbePort"),
        /// The path of the shared health check.
        pub probe_path: String = Setting::key("healthProbe.path").default("/healthz")
            .ini("Global.ClusterServiceSharedLoadBalancerHealthProbePath"),
        /// Instance types, as a regular expression, whose Nodes wait for their topology labels.
        pub topology_types: String = Setting::key("topologyInstanceTypes").default(TOPOLOGY_TYPES)
            .ini("Global.SupportedTopologyInstanceTypePattern").non_empty()
            .valid(|text: &String| Regex::new(text).is_ok(), "a regular expression"),
        /// Which security groups network load balancers have: none of their own if not set.
        pub nlb_group_mode: Option<GroupMode> = Setting::key("nlbSecurityGroupMode")
            .ini("Global.NLBSecurityGroupMode"),
        /// What Services without the `type` annotation get.
        pub balancer_type: BalancerType = Setting::key("loadBalancerType").default("classic"),
        /// An access key, in place of the SDKs' chain of credentials.
        pub access_key_id: Option<String> = Setting::key("accessKeyId").env("AWS_ACCESS_KEY_ID").non_empty(),
        /// Its secret.
        pub secret_access_key: Option<Secret> = Setting::key("secretAccessKey").env("AWS_SECRET_ACCESS_KEY")
            .file("secretAccessKeyFile").non_empty(),
        /// The token of temporary keys.
        pub session_token: Option<Secret> = Setting::key("sessionToken").env("AWS_SESSION_TOKEN").non_empty(),
        /// The address of all services, such as of a stand-in for AWS.
        pub endpoint_url: Option<String> = Setting::key("endpoint").env("AWS_ENDPOINT_URL").non_empty(),
        /// The address of EC2.
        pub ec2_url: Option<String> = Setting::key("endpoints.ec2").env("AWS_ENDPOINT_URL_EC2").non_empty(),
        /// The address of classic load balancing.
        pub elb_url: Option<String> = Setting::key("endpoints.elasticLoadBalancing")
            .env("AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING").non_empty(),
        /// The address of load balancing version 2.
        pub elbv2_url: Option<String> = Setting::key("endpoints.elasticLoadBalancingV2")
            .env("AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2").non_empty(),
        /// The address of STS.
        pub sts_url: Option<String> = Setting::key("endpoints.sts").env("AWS_ENDPOINT_URL_STS").non_empty(),
        /// The address of the metadata service.
        pub metadata_url: Option<String> = Setting::key("endpoints.metadata")
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT").non_empty(),
        /// The region of the environment, if the configuration has none.
        pub env_region: Option<String> = Setting::only_env("AWS_REGION").non_empty(),
        /// Tags that the tagging controller sets on instances of Nodes.
        pub tags: BTreeMap<String, String> = Setting::key("tagging.tags"),
    }
    rest {
        /// Other addresses of services, from `[ServiceOverride]`.
        pub overrides: Vec<Override>,
        /// The files that secrets were read from.
        pub files: Vec<PathBuf>,
    }
}

const TAGS: FlagKey<BTreeMap<String, String>> = FlagKey::new(
    "tags",
    "Tags that the tagging controller sets: a=1,b=2. It runs with --controllers=*,tagging.",
);
const RESOURCES: FlagKey<Vec<String>> = FlagKey::new(
    "resources",
    "What the tagging controller tags: only `instance` is known.",
);
const RATE: FlagKey<f64> = FlagKey::new(
    "tagging-controller-rate-limit",
    "Validated, but without effect: tags are set in batches, only where they are missing.",
);
const BURST: FlagKey<u32> = FlagKey::new(
    "tagging-controller-burst-limit",
    "Validated, but without effect, as the rate limit.",
);
const SYNCS: FlagKey<u32> = FlagKey::new(
    "tagging-controller-concurrent-node-syncs",
    "Validated, but without effect: one batch serves all Nodes.",
);
const BATCHING: FlagKey<bool> = FlagKey::new(
    "tagging-controller-enable-batching",
    "Validated, but without effect: it always batches.",
);

impl Config {
    /// Reads the settings and reports everything that is wrong with them.
    pub fn read(input: &ProviderInput) -> Result<Self, Problems> {
        let ini = match &input.config {
            ConfigSource::File { text, .. } => Some(Ini::parse(text)?),
            _ => None,
        };
        let mut reader = match &ini {
            Some(ini) => SettingsReader::ini(ini, &input.env),
            None => SettingsReader::of(input),
        };
        let mut config = Self::load(&mut reader);
        config.check(&mut reader);
        config.files = reader.files();
        let mut problems = Problems::new();
        problems.note_all(reader.finish(()));
        let overrides = ini.as_ref().map(Override::read_all);
        let overrides = overrides.and_then(|read| problems.note_all(read));
        config.overrides = overrides.unwrap_or_default();
        config.read_flags(&input.flags, &mut problems);
        problems.into_result()?;
        Ok(config)
    }

    fn read_flags(&mut self, flags: &FlagValues, problems: &mut Problems) {
        if let Some(Some(tags)) = problems.note(TAGS.get(flags)) {
            self.tags = tags;
        }
        let resources = problems.note(RESOURCES.get(flags)).flatten();
        let resources = resources.unwrap_or_default();
        if resources.iter().any(|resource| resource != "instance") {
            let given = resources.join(",");
            problems.push(Problem::unexpected("--resources", given, "`instance`"));
        }
        problems.note(RATE.get(flags));
        problems.note(BURST.get(flags));
        problems.note(SYNCS.get(flags));
        problems.note(BATCHING.get(flags));
    }

    /// What only shows when settings are seen together.
    fn check(&self, reader: &mut SettingsReader<'_>) {
        if let (Some(id), Some(legacy)) = (&self.cluster_id, &self.legacy_cluster_tag)
            && id != legacy
        {
            let other = reader.name(&Self::legacy_cluster_tag());
            let message = format!("{id:?} differs from {legacy:?} of {other}: give one of them");
            reader.problem(&Self::cluster_id(), message);
        }
        if let Some(zone) = &self.zone
            && region_of_zone(zone).is_none()
        {
            let message = format!("{zone:?}: expected a zone such as `eu-west-1a`");
            reader.problem(&Self::zone(), message);
        }
        if self.access_key_id.is_some() != self.secret_access_key.is_some() {
            let other = reader.name(&Self::secret_access_key());
            reader.problem(
                &Self::access_key_id(),
                format!("give both this and {other}"),
            );
        }
        if self.node_ip_families.is_empty() {
            reader.problem(&Self::node_ip_families(), "expected `ipv4`, `ipv6` or both");
        }
    }

    /// The region that the configuration names.
    pub(crate) fn configured_region(&self) -> Option<String> {
        let of_zone = self.zone.as_deref().and_then(region_of_zone);
        let regions = of_zone.or_else(|| self.region.clone());
        regions.or_else(|| self.env_region.clone())
    }

    /// The families of addresses of Nodes.
    pub(crate) fn families(&self) -> Vec<IpFamily> {
        let family = |family: &NodeIpFamily| match family {
            NodeIpFamily::Ipv4 => IpFamily::V4,
            NodeIpFamily::Ipv6 => IpFamily::V6,
        };
        self.node_ip_families.iter().map(family).collect()
    }

    /// Whether all is known that an instance of the cluster would say about itself.
    pub(crate) const fn is_off_instance(&self) -> bool {
        let has_id = self.cluster_id.is_some() || self.legacy_cluster_tag.is_some();
        let has_place = self.subnet_id.is_some() || self.role_arn.is_some();
        self.vpc.is_some() && has_id && has_place
    }

    /// Every key, for the reference page.
    pub(crate) fn docs() -> Vec<KeyDoc> {
        let flags = vec![
            TAGS.doc(),
            RESOURCES.doc(),
            RATE.doc(),
            BURST.doc(),
            SYNCS.doc(),
            BATCHING.doc(),
        ];
        by_name([Self::keys(), Override::docs(), flags])
    }
}

/// What comes before the letter of a zone: `eu-west-1` of `eu-west-1a`, and of `us-west-2-lax-1a` `us-west-2`.
fn region_of_zone(zone: &str) -> Option<String> {
    let pattern = Regex::new(r"^([a-zA-Z]+-)+\d+").ok()?;
    pattern.find(zone).map(|found| found.as_str().to_owned())
}

#[cfg(test)]
mod tests;
