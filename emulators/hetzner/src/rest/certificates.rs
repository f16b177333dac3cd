//! New certificates.

use cloudkeel_emulation::history::View;
use cloudkeel_emulation::jobs::RunsJobs as _;
use cloudkeel_emulation::list::Labels;
use cloudkeel_emulation::{Answer, Call};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::read;
use super::names::check_new;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::state::{Certificate, ProjectContext, issue, read_certificate};

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

impl Certificate {
    /// `managed` or `uploaded`.
    pub(super) const fn kind(&self) -> &'static str {
        if self.managed { "managed" } else { "uploaded" }
    }
}

impl ProjectContext<'_> {
    pub(super) fn create_certificate(&mut self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let new: NewCertificate = read(call)?;
        check_new(&self.project.certificates, &new.name, &new.labels)?;
        let managed = match new.kind.as_deref().unwrap_or("uploaded") {
            "managed" => true,
            "uploaded" => false,
            other => return Err(Refusal::invalid("type", format!("unknown type {other:?}"))),
        };
        let mut certificate = Certificate {
            id: self.counters.ids.number(),
            name: new.name,
            labels: new.labels,
            managed,
            domain_names: new.domain_names,
            issued: None,
            issuance: "pending",
            failure: None,
            created: self.clock.time_at(self.now),
        };
        if managed && certificate.domain_names.is_empty() {
            let message = "is required for managed certificates";
            return Err(Refusal::invalid("domain_names", message));
        }
        if !managed {
            let pem = new.certificate.unwrap_or_default();
            let (issued, domains) = read_certificate(&pem)
                .ok_or_else(|| Refusal::invalid("certificate", "is not a certificate in PEM"))?;
            let key = new.private_key.unwrap_or_default();
            if !key.contains("PRIVATE KEY") {
                let message = "is not a private key in PEM";
                return Err(Refusal::invalid("private_key", message));
            }
            certificate.domain_names = domains;
            certificate.issued = Some(issued);
        }
        let id = certificate.id;
        self.project.certificates.put(id, certificate, self.now);
        let action = managed.then(|| self.issue_certificate(id));
        let certificate = self.project.certificates.get(&id);
        let body = json!({
            "certificate": certificate.map(|certificate| self.render_certificate(certificate)),
            "action": action,
        });
        Ok(Answer::json(StatusCode::CREATED, &body))
    }

    /// One that a balancer uses stays.
    pub(super) fn delete_certificate(&mut self, call: &Call<Operation>) -> Result<Answer, Refusal> {
        let id = self.find::<Certificate>(call)?.id;
        let mut balancers = self.project.balancers.values(View::Now);
        if balancers.any(|balancer| balancer.certificates().contains(&id)) {
            return Err(Refusal::new("conflict", "the certificate is in use"));
        }
        self.project.certificates.remove(&id, self.now);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// Issuing takes its own time, and can fail for its own reasons.
    fn issue_certificate(&mut self, id: u64) -> Option<Value> {
        let mut job = self.job("create_certificate", vec![("certificate", id)]);
        job.duration = self.settings.certificate_duration;
        let clock = self.clock;
        let job = self.project.begin_with(job, self.now, move |project, end| {
            let failure = end.error.map(str::to_owned);
            project.certificates.edit(&id, end.at, |certificate| {
                if failure.is_none() {
                    certificate.issued = issue(&certificate.domain_names, clock.time_at(end.at));
                    certificate.issuance = "completed";
                } else {
                    certificate.issuance = "failed";
                }
                certificate.failure = failure;
            });
        });
        job.map(|job| self.action(&job))
    }
}
