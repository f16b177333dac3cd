//! `--feature-gates`

use std::collections::BTreeMap;

use cloudkeel_api::{KeyValue, nearest};
use serde::Serialize;

use super::reader::OptionReader;
use crate::flags;

/// A feature gate that upstream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// Its name.
    pub name: &'static str,
    /// Its default.
    pub default: bool,
    /// What it does here.
    pub help: &'static str,
}

const WATCHED_ROUTES: &str = "CloudControllerManagerWatchBasedRoutesReconciliation";

const KNOWN: [Gate; 9] = [
    Gate {
        name: "AllAlpha",
        default: false,
        help: "No effect: no behaviour of cloudkeel is alpha.",
    },
    Gate {
        name: "AllBeta",
        default: false,
        help: "No effect: no behaviour of cloudkeel is beta.",
    },
    Gate {
        name: WATCHED_ROUTES,
        default: true,
        help: "Routes are always updated when Nodes change. If set to true, --route-reconciliation-period is \
               ignored; if set to false, all routes are also checked that often.",
    },
    Gate {
        name: "CloudControllerManagerWebhook",
        default: false,
        help: "Serve the webhooks that --webhooks names.",
    },
    Gate {
        name: "ContextualLogging",
        default: true,
        help: "No effect: logs always have their context.",
    },
    Gate {
        name: "ControllerManagerReleaseLeaderElectionLockOnExit",
        default: true,
        help: "No effect: see --leader-elect-release-on-exit.",
    },
    Gate {
        name: "LoggingAlphaOptions",
        default: false,
        help: "No effect: all logging flags can be used.",
    },
    Gate {
        name: "LoggingBetaOptions",
        default: true,
        help: "No effect: all logging flags can be used.",
    },
    Gate {
        name: "NativeHistograms",
        default: true,
        help: "No effect: histograms have buckets.",
    },
];

/// Gates of the API server library in the current releases, which upstream's manager accepts too. They have no
/// effect on a manager, but command lines may contain them.
const OF_THE_API_SERVER: [&str; 46] = [
    "APIResponseCompression",
    "APIServerIdentity",
    "APIServerTracing",
    "APIServingWithRoutine",
    "AggregatedDiscoveryRemoveBetaType",
    "AllowParsingUserUIDFromCertAuth",
    "AllowUnsafeMalformedObjectDeletion",
    "AnonymousAuthConfigurableEndpoints",
    "AuthorizeWithSelectors",
    "BtreeWatchCache",
    "CBORServingAndStorage",
    "ComponentFlagz",
    "ComponentStatusz",
    "ConcurrentWatchObjectDecode",
    "ConsistentListFromCache",
    "ConstrainedImpersonation",
    "CoordinatedLeaderElection",
    "DeclarativeValidation",
    "DeclarativeValidationTakeover",
    "DetectCacheInconsistency",
    "KMSv1",
    "KMSv2",
    "ListFromCacheSnapshot",
    "MutatingAdmissionPolicy",
    "OpenAPIEnums",
    "RemoteRequestHeaderUID",
    "ResilientWatchCacheInitialization",
    "RetryGenerateName",
    "SeparateCacheWatchRPC",
    "SizeBasedListCostEstimate",
    "StorageVersionAPI",
    "StorageVersionHash",
    "StreamingCollectionEncodingToJSON",
    "StreamingCollectionEncodingToProtobuf",
    "StructuredAuthenticationConfiguration",
    "StructuredAuthenticationConfigurationEgressSelector",
    "StructuredAuthenticationConfigurationJWKSMetrics",
    "StructuredAuthorizationConfiguration",
    "TokenRequestServiceAccountUIDValidation",
    "UnauthenticatedHTTP2DOSMitigation",
    "UnknownVersionInteroperabilityProxy",
    "ValidatingAdmissionPolicy",
    "WatchBookmark",
    "WatchCacheInitializationPostStartHook",
    "WatchFromStorageWithoutResourceVersion",
    "WatchList",
];

/// The gates that were set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct FeatureGates {
    set: BTreeMap<String, bool>,
}

impl FeatureGates {
    /// All known gates.
    pub const fn known() -> &'static [Gate] {
        &KNOWN
    }

    /// Whether webhooks may be served.
    pub fn webhooks(&self) -> bool {
        self.is_on("CloudControllerManagerWebhook")
    }

    /// The value of the gate for watch-based routes, if it was set.
    pub fn watched_routes(&self) -> Option<bool> {
        self.set.get(WATCHED_ROUTES).copied()
    }

    /// Whether a gate is on.
    pub fn is_on(&self, name: &str) -> bool {
        let default = KNOWN.iter().any(|gate| gate.name == name && gate.default);
        self.set.get(name).copied().unwrap_or(default)
    }

    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let mut set = BTreeMap::new();
        for item in reader.list(&flags::FEATURE_GATES)? {
            let parsed = item
                .split_once('=')
                .and_then(|(name, value)| Some((name, bool::parse(value).ok()?)));
            match parsed {
                Some((name, on)) if is_known(name) => {
                    set.insert(name.to_owned(), on);
                }
                // Gates and charts come and go with releases. None of these gates can be meant for this program.
                Some((name, _)) => reader.warn(unknown(name)),
                None => reader.refuse("--feature-gates", item, "`Name=true` or `Name=false`"),
            }
        }
        Some(Self { set })
    }
}

fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|gate| gate.name == name) || OF_THE_API_SERVER.contains(&name)
}

fn unknown(name: &str) -> String {
    let near = nearest(name, KNOWN.iter().map(|gate| gate.name));
    let hint = near.map_or_else(String::new, |near| format!(": did you mean {near}?"));
    format!("--feature-gates: {name:?} is not known and has no effect{hint}")
}
