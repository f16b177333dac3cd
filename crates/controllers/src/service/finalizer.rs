//! The finalizer of a Service: it is there before its balancer is created.

use std::sync::Arc;

use super::controller::ServiceController;
use super::delete::MOST_CONFLICTS;
use super::events::Stage;
use super::failure::Failure;
use super::owner::wants_balancer;
use super::status;
use crate::planted::Bug;
use crate::runtime::WriteError;
use crate::view::ServiceView;
use crate::wellknown::CLEANUP_FINALIZER;

impl ServiceController {
    /// Nothing is asked of a cloud before the finalizer is there. Returns whether the Service still is, and asks for a
    /// balancer.
    ///
    /// A finalizer that another process added may be gone again: a watch may lag behind. So it is written once more,
    /// which changes nothing, unless the Service has a balancer, which has to be missed before one is created.
    pub(super) async fn add_finalizer(
        &self,
        service: &mut Arc<ServiceView>,
    ) -> Result<bool, Failure> {
        let writer = &self.parts.writer;
        let fail = |error: &WriteError| Failure::of_write(Stage::AddFinalizer, error);
        for _ in 0..MOST_CONFLICTS {
            let is_there = service.has_finalizer(CLEANUP_FINALIZER);
            let is_certain = !service.ingress.is_empty() || self.knows_finalizer(service);
            if (is_there && is_certain) || Bug::FinalizerOnLate.is_planted() {
                return Ok(true);
            }
            match self.write_finalizer(service).await {
                Ok(written) => {
                    *service = written;
                    return Ok(true);
                }
                Err(WriteError::Gone) => return Ok(false),
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(fail(&error)),
            }
            let latest = writer.read(&service.service).await;
            let latest = latest.map_err(|error| fail(&error))?;
            match latest.filter(|latest| wants_balancer(latest, &self.parts.classes)) {
                Some(latest) => *service = Arc::new(latest),
                None => return Ok(false),
            }
        }
        Err(fail(&WriteError::Conflict))
    }

    /// Whether the API server has confirmed the finalizer to this process.
    fn knows_finalizer(&self, service: &Arc<ServiceView>) -> bool {
        self.records.update(service, |record| record.has_finalizer)
    }

    async fn write_finalizer(
        &self,
        service: &Arc<ServiceView>,
    ) -> Result<Arc<ServiceView>, WriteError> {
        let patch = status::add_finalizer(service);
        let written = self.parts.writer.patch(&service.service, &patch).await?;
        let written = self.note_written(written);
        let is_new = !service.has_finalizer(CLEANUP_FINALIZER);
        self.records.update(&written, |record| {
            record.has_finalizer = true;
            record.is_first_leader |= is_new;
        });
        Ok(written)
    }

    /// Whether a Service still has the finalizer before another balancer is created for it.
    pub(super) async fn confirm_finalizer(
        &self,
        service: &Arc<ServiceView>,
    ) -> Result<bool, Failure> {
        if self.knows_finalizer(service) {
            return Ok(true);
        }
        match self.write_finalizer(service).await {
            Ok(_) => Ok(true),
            Err(WriteError::Gone | WriteError::Conflict) => Ok(false),
            Err(error) => Err(Failure::of_write(Stage::AddFinalizer, &error)),
        }
    }
}
