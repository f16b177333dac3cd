//! Credentials: a bad one is noticed, and none is ever shown.

use std::error::Error as StdError;

use cloudkeel_api::{
    CloudError, DesiredState, ErrorKind, Existence, NodeFacts, Outcome, RouteChange,
    ScopeFingerprint, Shared,
};
use futures::FutureExt as _;

use super::adapter::Stop;
use super::cancelled::{Cancellation, at_each_await};
use super::check::{Check, Done, general};
use super::desired::spec;
use super::env::{TestEnv, ensure};
use super::fault::{Fault, FaultTiming};
use super::logs::collected;
use super::routes::creations;
use super::secret_forms::encoded_forms;

pub(super) const CHECKS: &[Check] = &[
    general(
        "credentials/refused-one-fails-the-check",
        "`check()` with a credential that the cloud refuses is Unauthenticated",
        |env| bad(env, Fault::Unauthenticated, ErrorKind::Unauthenticated).boxed(),
    ),
    general(
        "credentials/powerless-one-fails-the-check",
        "`check()` with a credential that may not read is Denied",
        |env| bad(env, Fault::Denied, ErrorKind::Denied).boxed(),
    ),
    general(
        "credentials/restored-one-passes-the-check",
        "`check()` succeeds again as soon as the cloud accepts the credential again",
        |env| restored(env).boxed(),
    ),
    general(
        "credentials/cancelled-check-is-repeatable",
        "a `check()` that is dropped at any await succeeds when it is repeated",
        |env| at_each_await(env, CHECK).boxed(),
    ),
    general(
        "credentials/none-is-shown-in-errors",
        "no fault makes an error or an Event show a credential, in any of its forms",
        |env| not_in_errors(env).boxed(),
    ),
    general(
        "credentials/none-is-logged",
        "no fault makes a log line show a credential, at any level",
        |env| not_in_logs(env).boxed(),
    ),
];

async fn bad(env: &TestEnv<'_>, fault: Fault, expected: ErrorKind) -> Done {
    env.provider.check().await?;
    env.inject(FaultTiming::Always, fault)?;
    let checked = env.provider.check().await;
    let kind = checked.as_ref().err().map(CloudError::kind);
    ensure(kind == Some(expected), || {
        format!("expected was {expected}, `check()` says {checked:?}")
    })?;
    // A provider that reads on the way in fails there; any other fails its check.
    if let Ok(provider) = env.reconnect().await {
        let checked = provider.check().await;
        ensure(checked.is_err(), || {
            format!("a provider made with a bad credential says {checked:?}")
        })?;
    }
    Ok(())
}

async fn restored(env: &TestEnv<'_>) -> Done {
    let before = env.provider.check().await?;
    env.inject(FaultTiming::Always, Fault::Unauthenticated)?;
    let refused = env.provider.check().await;
    ensure(refused.is_err(), || {
        format!("a refused credential passes: {refused:?}")
    })?;
    env.clear_faults();
    scope_is(env, &before).await
}

const CHECK: Cancellation<ScopeFingerprint> = Cancellation {
    prepare: |env| async { Ok(env.provider.check().await?) }.boxed(),
    work: |env, scope| scope_is(env, scope).boxed(),
    repeat: |env, scope| scope_is(env, scope).boxed(),
};

async fn scope_is(env: &TestEnv<'_>, before: &ScopeFingerprint) -> Done {
    let after = env.provider.check().await?;
    ensure(*before == after, || {
        format!("the scope was {before} and is {after}")
    })
}

const FAULTS: [Fault; 8] = [
    Fault::Unauthenticated,
    Fault::Denied,
    Fault::Throttled,
    Fault::Unavailable,
    Fault::Timeout,
    Fault::Malformed,
    Fault::LostAnswer,
    Fault::OtherScope,
];

/// Everything that operations say of their failures, as text.
#[derive(Default)]
struct Said(Vec<String>);

impl Said {
    fn error(&mut self, error: &(dyn StdError + 'static)) {
        let mut next = Some(error);
        while let Some(error) = next {
            self.0
                .push(format!("{error} {error:#} {error:?} {error:#?}"));
            next = error.source();
        }
    }

    fn failed<T>(&mut self, result: Result<T, CloudError>) {
        if let Err(error) = result {
            self.error(&error);
        }
    }

    fn answer(&mut self, answer: &Existence) {
        self.0.push(format!("{answer:?} {answer:#?}"));
        if let Existence::Unknown(doubt) = answer {
            self.error(doubt);
        }
    }

    fn outcome(&mut self, outcome: Result<Outcome, CloudError>) {
        match outcome {
            Ok(outcome) => self.0.push(format!("{outcome:?}")),
            Err(error) => self.error(&error),
        }
    }
}

/// Calls every operation that the provider has.
async fn call_everything(env: &TestEnv<'_>, nodes: &[NodeFacts; 2]) -> Result<Said, Stop> {
    let mut said = Said::default();
    said.failed(env.provider.check().await);
    if let Err(error) = env.reconnect().await {
        said.error(&error);
    }
    let shared = Shared::of_each(nodes);
    if let Some(instances) = env.provider.instances() {
        said.failed(instances.list().await);
        for answer in instances.find_many(&shared, None).await {
            said.answer(&answer);
        }
        let by_name = NodeFacts {
            name: "node-1".to_owned(),
            ..NodeFacts::default()
        };
        said.answer(&instances.find(&by_name, None).await);
    }
    if let Some(balancers) = env.provider.load_balancers() {
        let desired = spec(&[80], nodes);
        said.failed(balancers.plan(DesiredState::Present(&desired)).await);
        said.outcome(balancers.apply(DesiredState::Present(&desired)).await);
        said.outcome(balancers.apply_to_existing(&desired).await);
        for observed in balancers.observe_all(std::slice::from_ref(&desired)).await {
            said.failed(observed);
        }
        said.failed(balancers.owned().await);
        let absent = DesiredState::Absent(&desired.balancer_ref);
        said.outcome(balancers.apply(absent).await);
    }
    if let Some(routes) = env.provider.routes() {
        said.failed(routes.list(&shared).await);
        let changes: Vec<RouteChange> = creations(nodes)?;
        for result in routes.apply(&changes).await {
            said.failed(result);
        }
    }
    if let (Some(volumes), Ok(volume)) = (env.provider.volumes(), env.cloud.add_volume().await) {
        let found = volumes.recognize("disk", volume.source, &volume.content);
        if let Some(found) = found {
            said.failed(volumes.place(&found).await);
        }
    }
    for event in env.events() {
        said.0.push(format!("{event:?}"));
    }
    Ok(said)
}

fn secrets(env: &TestEnv<'_>) -> Result<Vec<String>, Stop> {
    let secrets = env.cloud.samples().secrets;
    if secrets.is_empty() {
        return Err(Stop::not_playable("the adapter names no credential"));
    }
    Ok(secrets)
}

fn none_is_shown(texts: &[String], secrets: &[String], when: Fault, by: &str) -> Done {
    let forms = encoded_forms(secrets);
    let shown = |text: &&String| forms.iter().any(|form| text.contains(form.as_str()));
    match texts.iter().find(shown) {
        None => Ok(()),
        Some(text) => {
            let clean = |text: String, form: &String| text.replace(form.as_str(), "<credential>");
            let text = forms.iter().fold(text.clone(), clean);
            Err(Stop::failed(format!(
                "{when:?}: {by} shows a credential: {text}"
            )))
        }
    }
}

async fn not_in_errors(env: &TestEnv<'_>) -> Done {
    let secrets = secrets(env)?;
    for fault in FAULTS {
        let env = env.another().await?;
        let nodes = env.add_some().await?;
        env.inject(FaultTiming::Always, fault)?;
        let said = call_everything(&env, &nodes).await?;
        none_is_shown(&said.0, &secrets, fault, "an error")?;
    }
    Ok(())
}

async fn not_in_logs(env: &TestEnv<'_>) -> Done {
    let secrets = secrets(env)?;
    let mut logged = 0;
    for fault in FAULTS {
        let env = env.another().await?;
        let nodes = env.add_some().await?;
        env.inject(FaultTiming::Always, fault)?;
        let (said, lines) = collected(call_everything(&env, &nodes)).await;
        said?;
        none_is_shown(&lines, &secrets, fault, "a log line")?;
        logged += lines.len();
    }
    ensure(logged > 0, || "nothing was logged for any fault".to_owned())
}
