//! Services that the operator has paused: nothing is written to them and nothing is changed for them in a cloud. What
//! is under way when the pause begins ends first.

use std::sync::Arc;

use cloudkeel_api::Event;
use tracing::info;

use super::controller::ServiceController;
use crate::log_messages::{SERVICE_PAUSED, SERVICE_RESUMED};
use crate::paused::{PAUSED_REASON, RESUMED_REASON};
use crate::runtime::Verdict;
use crate::view::{ServiceView, View as _};

impl ServiceController {
    /// Leaves a Service alone, and reports that once. The change that ends the pause enqueues it again.
    pub(super) fn pause(&self, service: &Arc<ServiceView>, why: &str) -> Verdict {
        let is_new = self.records.update(service, |record| {
            record.seen = Arc::clone(service);
            record.applying = None;
            record.removed_since.clear();
            record.paused.replace(why.to_owned()).as_deref() != Some(why)
        });
        if is_new {
            let what = if service.deleting {
                "the deletion of the Service and of its load balancer waits"
            } else {
                "nothing is written to the Service or changed for it in the cloud"
            };
            info!(service = %service.service, why, "{SERVICE_PAUSED}");
            let message = format!("The Service is {why}: {what} until the annotation is removed");
            self.emit(Event::normal(&service.service, PAUSED_REASON, message));
        }
        Verdict::Done
    }

    /// Reports once that a Service is not paused any more.
    pub(super) fn resume(&self, service: &ServiceView) {
        let mut was_paused = false;
        self.records.amend(&service.key(), |record| {
            was_paused = record.paused.take().is_some();
        });
        if was_paused {
            info!(service = %service.service, "{SERVICE_RESUMED}");
            let message = "The Service is not paused any more: its load balancer is reconciled";
            self.emit(Event::normal(&service.service, RESUMED_REASON, message));
        }
    }
}
