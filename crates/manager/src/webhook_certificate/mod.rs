//! The certificate of the webhook port: made, kept in a Secret, renewed, and trusted by the API server, without another
//! program.
//!
//! It is self-signed, and the API server trusts exactly this one: there is no authority whose key could sign another.
//! The leader writes it. Every replica serves it, because the API server may reach any of them. When it is renewed, the
//! API server is given both certificates first, so that a replica may serve the old one until it has read the new.

mod store;
mod stored;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Clock;
use kube::Client;
use tracing::{debug, info, warn};

use self::store::Store;
use self::stored::Stored;
use crate::log_messages::{WEBHOOK_CERTIFICATE_FAILED, WEBHOOK_CERTIFICATE_RENEWED};
use crate::options::WebhookService;
use crate::serving::SharedKeyPair;

/// How often replicas look for a new certificate.
const READ_PERIOD: Duration = Duration::from_secs(5);
/// How often the leader checks the certificate and what the API server trusts.
const CHECK_PERIOD: Duration = Duration::from_secs(30);

/// The names by which the API server calls the webhooks.
fn names_of(service: &WebhookService) -> Vec<String> {
    let WebhookService { namespace, name } = service;
    // The webhook may also be called by an address on the same host.
    let local = ["localhost", "127.0.0.1"].map(str::to_owned);
    let by_service = [
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local"),
    ];
    by_service.into_iter().chain(local).collect()
}

/// Serves the certificate in the Secret for as long as it is polled.
pub(crate) async fn follow_certificate(
    client: Client,
    service: WebhookService,
    served: SharedKeyPair,
) {
    let store = Store::new(client, &service);
    let mut current = None;
    loop {
        match store.read().await {
            Ok(secret) => {
                let pair = Stored::of(&secret).current;
                if pair != current
                    && let Some(pair) = &pair
                {
                    served.set(pair.clone());
                }
                current = pair;
            }
            // The leader reports what is missing.
            Err(err) => debug!(err, "failed to read the webhook certificate"),
        }
        tokio::time::sleep(READ_PERIOD).await;
    }
}

/// Makes and renews the certificate for as long as it is polled. Only the leader does, with a client that stops writing
/// with the lease.
pub(crate) async fn keep_certificate(
    client: Client,
    service: &WebhookService,
    clock: Arc<dyn Clock>,
) {
    let store = Store::new(client, service);
    let names = names_of(service);
    let mut reported = None;
    loop {
        let checked = check(&store, &names, clock.as_ref()).await;
        if let Err(err) = &checked
            && reported.as_ref() != Some(err)
        {
            let WebhookService { namespace, name } = service;
            warn!(namespace, name, err, "{WEBHOOK_CERTIFICATE_FAILED}");
        }
        reported = checked.err();
        tokio::time::sleep(CHECK_PERIOD).await;
    }
}

/// Renews the certificate if it has to be, and makes the API server trust it.
async fn check(store: &Store, names: &[String], clock: &dyn Clock) -> Result<(), String> {
    let mut secret = store.read().await?;
    let stored = Stored::of(&secret);
    let now = clock.now();
    let Some(renewed) = stored.renewed(names, now)? else {
        return store.trust(&stored.bundle(now)).await;
    };
    // Trusted first: a replica serves it as soon as it is in the Secret.
    store.trust(&renewed.bundle(now)).await?;
    renewed.write_to(&mut secret);
    store.replace(&secret).await?;
    info!("{WEBHOOK_CERTIFICATE_RENEWED}");
    Ok(())
}
