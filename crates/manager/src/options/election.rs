//! Options of leader election.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::reader::OptionReader;
use crate::flags;

/// Leader election and leader migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElectionOptions {
    /// `--leader-elect`
    pub enabled: bool,
    /// `--leader-elect-lease-duration`
    pub lease_duration: Duration,
    /// `--leader-elect-renew-deadline`
    pub renew_deadline: Duration,
    /// `--leader-elect-retry-period`
    pub retry_period: Duration,
    /// `--leader-elect-resource-name`
    pub name: String,
    /// `--leader-elect-resource-namespace`
    pub namespace: String,
    /// `--leader-elect-release-on-exit`
    pub release_on_exit: bool,
    /// `--enable-leader-migration`
    pub migration: bool,
    /// `--leader-migration-config`
    pub migration_config: Option<PathBuf>,
}

impl ElectionOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let enabled = reader.value(&flags::LEADER_ELECT);
        let lease_duration = reader.value(&flags::LEASE_DURATION);
        let renew_deadline = reader.value(&flags::RENEW_DEADLINE);
        let retry_period = reader.value(&flags::RETRY_PERIOD);
        let lock = reader.value(&flags::RESOURCE_LOCK);
        let name = reader.value(&flags::RESOURCE_NAME);
        let namespace = reader.value(&flags::RESOURCE_NAMESPACE);
        let release_on_exit = reader.value(&flags::RELEASE_ON_EXIT);
        let migration = reader.value(&flags::ENABLE_LEADER_MIGRATION);
        let migration_config = reader.text(&flags::LEADER_MIGRATION_CONFIG);
        let options = Self {
            enabled: enabled?,
            lease_duration: lease_duration?,
            renew_deadline: renew_deadline?,
            retry_period: retry_period?,
            name: name?,
            namespace: namespace?,
            release_on_exit: release_on_exit?,
            migration: migration?,
            migration_config: migration_config?.map(PathBuf::from),
        };
        if options.enabled && lock.as_deref() != Some("leases") {
            reader.refuse(
                "--leader-elect-resource-lock",
                lock.unwrap_or_default(),
                "leases",
            );
        }
        Some(options)
    }
}
