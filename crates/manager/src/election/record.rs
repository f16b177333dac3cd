//! The holder's record in a Lease.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::{Map, Value, json};

/// The part of a Lease's spec that an election reads and writes.
///
/// Its times are for people and for detecting changes. They are never compared with a clock: the clocks of two
/// machines differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The holder; empty if the lease was released.
    pub holder: String,
    /// How long others must see no change before they may take it.
    pub lease_seconds: i32,
    /// When the holder acquired it.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it.
    pub renewed: Option<Timestamp>,
    /// How often the holder changed.
    pub transitions: i32,
}

impl Record {
    /// Reads the spec of a Lease. An absent field is empty or zero.
    pub(super) fn read(spec: &Value) -> Result<Self, serde_json::Error> {
        if spec.is_null() {
            return Ok(Self::default());
        }
        let spec: LeaseSpec = serde_json::from_value(spec.clone())?;
        Ok(Self {
            holder: spec.holder_identity.unwrap_or_default(),
            lease_seconds: spec.lease_duration_seconds.unwrap_or_default(),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        })
    }

    /// Writes the five fields into a spec and leaves all others alone.
    pub(super) fn write_into(&self, spec: &mut Map<String, Value>) {
        let fields = [
            ("holderIdentity", json!(self.holder)),
            ("leaseDurationSeconds", json!(self.lease_seconds)),
            ("acquireTime", json!(self.acquired.map(MicroTime))),
            ("renewTime", json!(self.renewed.map(MicroTime))),
            ("leaseTransitions", json!(self.transitions)),
        ];
        spec.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }

    /// How long others must see no change before they may take the lease.
    pub(super) fn lease_duration(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.lease_seconds).unwrap_or_default())
    }

    /// Whether it has no holder.
    pub(super) fn is_released(&self) -> bool {
        self.holder.is_empty()
    }
}

/// A time as it is stored, so that what was written equals what is read back.
pub(super) fn stored(moment: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(moment.as_microsecond()).unwrap_or(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn times_are_written_with_six_digits_as_go_writes_them() {
        for (case, moment, text) in [
            (
                "a whole second",
                "2026-02-03T04:05:06Z",
                "2026-02-03T04:05:06.000000Z",
            ),
            (
                "trailing zeros",
                "2026-02-03T04:05:06.1Z",
                "2026-02-03T04:05:06.100000Z",
            ),
            (
                "nanoseconds",
                "2026-02-03T04:05:06.123456999Z",
                "2026-02-03T04:05:06.123456Z",
            ),
        ] {
            let record = Record {
                renewed: Some(at(moment)),
                ..Record::default()
            };
            let mut spec = Map::new();
            record.write_into(&mut spec);
            assert_eq!(spec["renewTime"], text, "{case}");
        }
    }

    #[test]
    fn a_written_record_is_read_back_the_same() {
        let record = Record {
            holder: "node-1_5e1f".to_owned(),
            lease_seconds: 15,
            acquired: Some(at("2026-02-03T04:05:06.5Z")),
            renewed: Some(at("2026-02-03T04:06:06.000001Z")),
            transitions: 7,
        };
        let mut spec = Map::new();
        record.write_into(&mut spec);
        assert_eq!(Record::read(&Value::Object(spec)).unwrap(), record);
    }

    #[test]
    fn fields_of_coordinated_election_and_of_the_future_are_kept() {
        let mut spec = Map::new();
        for name in ["strategy", "preferredHolder", "somethingNew"] {
            spec.insert(name.to_owned(), json!("kept"));
        }
        Record::default().write_into(&mut spec);
        for name in ["strategy", "preferredHolder", "somethingNew"] {
            assert_eq!(spec[name], "kept", "{name}");
        }
    }

    #[test]
    fn a_lease_without_fields_is_unheld_and_has_no_duration() {
        for (case, spec) in [("no spec", Value::Null), ("an empty one", json!({}))] {
            let record = Record::read(&spec).unwrap();
            assert!(record.is_released(), "{case}");
            assert_eq!(record.lease_duration(), Duration::ZERO, "{case}");
        }
    }

    #[test]
    fn a_moment_is_stored_without_its_nanoseconds() {
        let moment = "2026-02-03T04:05:06.123456999Z".parse().unwrap();
        assert_eq!(stored(moment).to_string(), "2026-02-03T04:05:06.123456Z");
    }
}
