//! Calls that change certificates.

use serde::Deserialize;
use serde_json::json;

use super::super::operation::Operation;
use super::super::refusal::Refusal;
use super::super::world::actions::Action;
use super::super::world::{
    Certificate, Labels, Moment, Project, Scene, edit, issue, read_certificate,
};
use super::body::read;
use super::names::{Update, check_new};
use super::{Answer, Call};

#[derive(Deserialize)]
struct NewCertificate {
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    domain_names: Vec<String>,
    certificate: Option<String>,
    private_key: Option<String>,
    #[serde(default)]
    labels: Labels,
}

impl Scene<'_> {
    pub(super) fn change_certificate(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        if call.operation == Operation::CreateCertificate {
            return self.create_certificate(read(call.body)?);
        }
        let id = call.id("certificate")?;
        let found = self.project.certificates.get(id);
        let found = found.ok_or_else(|| Refusal::not_found("certificate", id))?;
        let certificate = found.as_ref().clone();
        match call.operation {
            Operation::UpdateCertificate => {
                let update: Update = read(call.body)?;
                update.apply(&mut self.project.certificates, id, self.now)?;
                let changed = self.project.certificates.get(id);
                self.show("certificate", id, changed, Self::render_certificate)
            }
            Operation::DeleteCertificate => self.delete_certificate(id),
            _ if !certificate.managed || certificate.issuance != "failed" => Err(Refusal::new(
                "unsupported_error",
                "only a managed certificate that failed can be retried",
            )),
            _ => {
                let action = self.issue_certificate(id, "issue_certificate");
                Ok(self.began(&action))
            }
        }
    }

    fn create_certificate(&mut self, new: NewCertificate) -> Result<Answer, Refusal> {
        check_new(&self.project.certificates, &new.name, &new.labels)?;
        let managed = match new.kind.as_deref().unwrap_or("uploaded") {
            "managed" => true,
            "uploaded" => false,
            other => return Err(Refusal::invalid("type", format!("unknown type {other:?}"))),
        };
        let id = self.counters.id();
        let mut certificate = Certificate {
            id,
            name: new.name,
            labels: new.labels,
            managed,
            domain_names: new.domain_names,
            issued: None,
            issuance: "pending",
            failure: None,
            created: self.now.time,
        };
        if managed && certificate.domain_names.is_empty() {
            return Err(Refusal::invalid(
                "domain_names",
                "is required for managed certificates",
            ));
        }
        if !managed {
            let pem = new.certificate.unwrap_or_default();
            let Some((issued, domains)) = read_certificate(&pem) else {
                return Err(Refusal::invalid(
                    "certificate",
                    "is not a certificate in PEM",
                ));
            };
            if !new
                .private_key
                .is_some_and(|key| key.contains("PRIVATE KEY"))
            {
                return Err(Refusal::invalid(
                    "private_key",
                    "is not a private key in PEM",
                ));
            }
            certificate.domain_names = domains;
            certificate.issued = Some(issued);
        }
        self.project
            .certificates
            .put(id, certificate, self.now.instant);
        let action = managed.then(|| self.issue_certificate(id, "create_certificate"));
        let certificate = self.project.certificates.get(id);
        Ok(Answer::created(json!({
            "certificate": certificate.map(|certificate| self.render_certificate(certificate)),
            "action": action.map(|action| action.wire(self.now.instant)),
        })))
    }

    /// Issuing takes its own time, and can fail for its own reasons.
    fn issue_certificate(&mut self, id: u64, command: &'static str) -> Action {
        let mut work = self.work(command, vec![("certificate", id)]);
        work.due = self.now.plus(self.settings.certificate_duration);
        let failure = work.failure.clone();
        let on_success = move |project: &mut Project, now: Moment| {
            edit(&mut project.certificates, id, now, |certificate| {
                certificate.issued = issue(&certificate.domain_names, now.time);
                certificate.issuance = "completed";
                certificate.failure = None;
            });
        };
        let on_error = move |project: &mut Project, now| {
            edit(&mut project.certificates, id, now, |certificate| {
                certificate.issuance = "failed";
                certificate.failure = failure;
            });
        };
        self.project
            .begin(work, on_success, Some(Box::new(on_error)))
    }

    fn delete_certificate(&mut self, id: u64) -> Result<Answer, Refusal> {
        let mut balancers = self.project.balancers.iter();
        if balancers.any(|(_, balancer)| balancer.certificates().contains(&id)) {
            let message = "certificate is used by a load balancer";
            return Err(Refusal::new("resource_in_use", message));
        }
        self.project.certificates.remove(id, self.now.instant);
        Ok(Answer::nothing())
    }
}
