//! Clouds under the names of real ones, with their settings, in front of the simulated cloud.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BackgroundContext, BackgroundController, BuildError, Capability, CloudError, CloudProvider,
    ConfigSource, Descriptor, Documented as _, EnvKey, EnvReader, FlagKey, Instances, KeyDoc,
    LoadBalancers, Problem, ProvidedController, ProviderContext, ProviderFactory, ProviderId,
    ProviderInput, Recognition, Registry, Routes, ScopeFingerprint, Secret,
};
use cloudkeel_provider_local::{Config, LocalProvider, Wiring};

/// The label that the controller of `hcloud` writes: the last part of the credential in use.
pub(crate) const TAG: &str = "cloudkeel.test/tagged";

pub(crate) fn registry() -> Registry {
    let registry = Registry::new().with(Hetzner);
    let registry = registry.and_then(|registry| registry.with(OpenStack));
    registry.expect("two names")
}

struct StandIn {
    name: &'static str,
    has_cluster_id: bool,
    token: Secret,
    inner: LocalProvider,
}

#[async_trait]
impl CloudProvider for StandIn {
    fn name(&self) -> &str {
        self.name
    }
    fn recognize(&self, id: &ProviderId) -> Recognition {
        self.inner.recognize(id)
    }
    fn has_cluster_id(&self) -> bool {
        self.has_cluster_id
    }
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.inner.check().await
    }
    fn instances(&self) -> Option<&dyn Instances> {
        self.inner.instances()
    }
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        self.inner.load_balancers()
    }
    fn routes(&self) -> Option<&dyn Routes> {
        self.inner.routes()
    }
    fn background_controllers(&self) -> Vec<Arc<dyn BackgroundController>> {
        let token = self.token.expose();
        let (_, tag) = token.rsplit_once('-').unwrap_or(("", token));
        vec![Arc::new(Tagging(tag.to_owned()))]
    }
}

const TAGGING: &str = "tagging";
const PROVIDED_TAGGING: ProvidedController = ProvidedController {
    name: TAGGING,
    on_by_default: false,
    watches_services: false,
};

/// Labels every Node of its cloud.
struct Tagging(String);

#[async_trait]
impl BackgroundController for Tagging {
    fn name(&self) -> &'static str {
        TAGGING
    }

    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError> {
        let label = BTreeMap::from([(TAG.to_owned(), Some(self.0.clone()))]);
        loop {
            for node in context.nodes.snapshot() {
                context.writer.label_node(&node, &label).await?;
            }
            tokio::select! {
                () = context.stop.cancelled() => return Ok(()),
                () = context.nodes.changed() => {}
            }
        }
    }
}

async fn connect(
    name: &'static str,
    endpoint: String,
    token: Secret,
    context: &ProviderContext,
) -> Result<Arc<dyn CloudProvider>, BuildError> {
    let config = Config::new(endpoint, token.clone());
    let inner = LocalProvider::connect(&config, context, Wiring::default()).await?;
    Ok(Arc::new(StandIn {
        name,
        has_cluster_id: name == "openstack",
        token,
        inner,
    }))
}

const TOKEN: EnvKey<Secret> = EnvKey::new("HCLOUD_TOKEN", "Credential.").or_file();
const ENDPOINT: EnvKey<String> = EnvKey::new("HCLOUD_ENDPOINT", "API.").empty_is_unset();
const NETWORK: EnvKey<String> = EnvKey::new("HCLOUD_NETWORK", "Network.").empty_is_unset();
const NETWORK_ROUTES: EnvKey<bool> =
    EnvKey::new("HCLOUD_NETWORK_ROUTES_ENABLED", "Routes.").with_default("true");
const ROBOT: EnvKey<bool> = EnvKey::new("ROBOT_ENABLED", "Robot.").with_default("false");
const ROBOT_USER: EnvKey<Secret> = EnvKey::new("ROBOT_USER", "User of Robot.").or_file();
const ROBOT_PASSWORD: EnvKey<Secret> = EnvKey::new("ROBOT_PASSWORD", "Password.").or_file();

/// Everything from the environment, as the Go CCM has it.
struct Hetzner;

#[async_trait]
impl ProviderFactory for Hetzner {
    fn controllers(&self) -> &'static [ProvidedController] {
        &[PROVIDED_TAGGING]
    }

    fn descriptor(&self) -> Descriptor {
        Descriptor {
            name: "hcloud",
            summary: "A stand-in.",
            replaces: &["hcloud-cloud-controller-manager"],
            capabilities: vec![Capability::Instances],
            keys: vec![
                TOKEN.doc(),
                ENDPOINT.doc(),
                NETWORK.doc(),
                NETWORK_ROUTES.doc(),
                ROBOT.doc(),
                ROBOT_USER.doc(),
                ROBOT_PASSWORD.doc(),
            ],
        }
    }

    async fn build(
        &self,
        input: ProviderInput,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let mut reader = EnvReader::new(&input.env);
        let token = reader.get(&TOKEN);
        let endpoint = reader.get(&ENDPOINT);
        let has_routes =
            reader.get(&NETWORK).is_some() && reader.get(&NETWORK_ROUTES) == Some(true);
        let robot = reader.get(&ROBOT) == Some(true);
        let credentials = [reader.get(&ROBOT_USER), reader.get(&ROBOT_PASSWORD)];
        if token.is_none() {
            reader.note(Problem::new(TOKEN.name(), "is required"));
        }
        if robot && has_routes {
            reader.note(Problem::new(ROBOT.name(), "cannot be combined with routes"));
        }
        if robot && credentials.iter().flatten().count() != 2 {
            reader.note(Problem::new(
                ROBOT_USER.name(),
                "and ROBOT_PASSWORD are required",
            ));
        }
        reader.into_problems().into_result()?;
        let (endpoint, token) = (endpoint.unwrap_or_default(), token.unwrap_or_default());
        connect("hcloud", endpoint, token, &context).await
    }
}

const USER_AGENT: FlagKey<String> = FlagKey::new("user-agent", "Put in front of our own.");

/// Everything from a file in the form of git's configuration, as the Go CCM has it.
struct OpenStack;

#[async_trait]
impl ProviderFactory for OpenStack {
    fn controllers(&self) -> &'static [ProvidedController] {
        &[PROVIDED_TAGGING]
    }

    fn descriptor(&self) -> Descriptor {
        let keys: Vec<KeyDoc> = vec![USER_AGENT.doc()];
        Descriptor {
            name: "openstack",
            summary: "A stand-in.",
            replaces: &["openstack-cloud-controller-manager"],
            capabilities: vec![Capability::Instances],
            keys,
        }
    }

    async fn build(
        &self,
        input: ProviderInput,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        USER_AGENT.all(&input.flags).map_err(problem)?;
        let ConfigSource::File { text, .. } = &input.config else {
            return Err(problem(Problem::new("--cloud-config", "is required")));
        };
        let value = |key: &str| {
            let lines = text.lines().filter_map(|line| line.split_once('='));
            let mut found = lines.filter(|(name, _)| name.trim() == key);
            let (_, value) = found.next()?;
            Some(value.trim().trim_matches('"').to_owned())
        };
        let missing = |key: &'static str| problem(Problem::new(key, "is required"));
        let endpoint = value("auth-url").ok_or_else(|| missing("auth-url"))?;
        let token = match value("secret-name") {
            // As vSphere's CCM has it.
            Some(name) => {
                let mut secret = context.secrets.read("kube-system", &name).await?;
                secret.remove("token")
            }
            None => value("application-credential-secret").map(Secret::new),
        };
        let token = token.ok_or_else(|| missing("application-credential-secret"))?;
        connect("openstack", endpoint, token, &context).await
    }
}

fn problem(problem: Problem) -> BuildError {
    BuildError::Settings(problem.into())
}
