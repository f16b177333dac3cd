//! The contract between cloudkeel's controllers and its clouds.
//!
//! A cloud implements [`CloudProvider`], which needs nothing but a name. What else it can do are
//! [`Instances`], [`LoadBalancers`], [`Routes`], [`Clusters`], [`Volumes`], webhooks and background
//! controllers, each optional. Three ideas run through all of them:
//!
//! * **Providers see domain values, never Kubernetes objects.** A Service becomes a
//!   [`LoadBalancerSpec`], a Node becomes [`NodeFacts`].
//! * **Existence has three answers.** Only [`Existence::Gone`] may lead to a deletion, and its
//!   [`GoneProof`] cannot be built from an error, a short list or a blind credential.
//! * **Changes are observed, planned, applied.** A plan is a pure function from values to steps;
//!   equal state means no mutating call.
//!
//! This crate knows neither a Kubernetes client nor an HTTP client.

mod address;
mod background;
mod clock;
mod cluster;
mod context;
mod error;
mod event;
mod existence;
mod instance;
mod key;
mod label;
mod load_balancer;
mod log_message;
pub mod names;
mod node;
mod observer;
mod provider;
mod provider_id;
mod registry;
mod route;
mod secret;
mod selector;
mod service;
mod shared;
mod text;
mod volume;
mod warning_delay;
mod webhook;

pub use address::{AddressKind, IpFamily, NodeAddress};
pub use background::{
    BackgroundContext, BackgroundController, MetadataChanges, MetadataWriter, NodeFeed,
    ProvidedController, ServiceFeed,
};
pub use clock::{Clock, SystemClock, TokioClock};
pub use cluster::{ClusterIdentity, Clusters};
pub use context::{NoSecrets, ProviderContext, SecretStore};
pub use error::{CloudError, ErrorKind, Retry, Source};
pub use event::{CollectedEvents, Event, EventSink, NoEvents, Severity, SharedEvents, Subject};
pub use existence::{
    Absence, Doubt, Evidence, Existence, GoneProof, KnownInstance, ScopeFingerprint,
};
pub use instance::{BlindSpot, Instance, InstanceList, InstanceState, Instances, Match};
pub use key::{
    AnnotationKey, ConfigKey, ConfigReader, Documented, EnvKey, EnvReader, FlagKey, FlagValues,
    KeyDoc, KeyField, KeyPlace, KeyValue, Problem, Problems, UnknownAnnotation, format_go_duration,
    nearest, parse_go_duration, reference_table, unknown_annotations,
};
pub use label::{LabelProblem, check_label, is_dns_subdomain, is_label_key, is_label_value};
pub use load_balancer::{
    Affinity, Algorithm, BalancerProfile, BalancerRef, Busy, CheckProtocol, DesiredState,
    DriftPolicy, Driven, Executed, Failures, Features, HealthCheck, HealthCheckPolicy, HealthProbe,
    HealthState, HealthSummary, Ingress, IpFamilyPolicy, IpMode, Limits, Listener,
    LoadBalancerDriver, LoadBalancerSpec, LoadBalancerStatus, LoadBalancers, LockKey, Observation,
    Options, OtherService, OtherServices, Outcome, OwnedResource, Plan, PlannedStep, Protocol,
    ProxyProtocol, ProxyProtocolChoice, ProxyProtocols, Report, ResourceKind, ServiceChanges,
    ServiceCondition, ServiceRef, ServiceSearch, Step, StepAction, StepOutcome, Target, TargetBy,
    TargetHealth, TargetState, TrafficPolicy, UnprovenResource,
};
pub use log_message::{LogMessage, LogSeverity};
pub use node::NodeFacts;
pub use observer::{BudgetRecord, CallObserver, CallRecord, NoObserver, Priority, SharedObserver};
pub use provider::{Capability, CloudProvider, Recognition};
pub use provider_id::{ProviderId, ProviderIdError};
pub use registry::{
    BuildError, ConfigSource, Descriptor, ProviderFactory, ProviderInput, Registry, RegistryError,
};
pub use route::{Route, RouteChange, RouteTarget, Routes};
pub use secret::{REDACTED, Secret};
pub use selector::{LabelSelector, SelectorError};
pub use service::{ServiceFacts, ServicePort, ServiceType};
pub use shared::Shared;
pub use text::one_line;
pub use volume::{VolumePlace, VolumeRef, Volumes};
pub use warning_delay::WarningDelay;
pub use webhook::{Admission, AdmissionRequest, PatchOperation, ProvidedWebhook, Webhook};
