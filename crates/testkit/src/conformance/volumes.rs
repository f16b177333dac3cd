//! Disks, as far as their topology labels go.

use cloudkeel_api::Capability::Volumes;
use cloudkeel_api::{CloudError, ErrorKind, VolumeRef};
use futures::FutureExt as _;
use futures::future::ready;
use serde_json::{Value, json};

use super::adapter::Stop;
use super::cancelled::{Cancellation, at_each_await};
use super::check::{Check, Done, check};
use super::env::{TestEnv, ensure};
use super::fault::{Fault, FaultTiming};

pub(super) const CHECKS: &[Check] = &[
    check(
        Volumes,
        "volumes/placed",
        "a disk is recognized by its volume source, and has the zones and region that it is in",
        |env| placed(env).boxed(),
    ),
    check(
        Volumes,
        "volumes/missing-is-not-found",
        "a disk that does not exist is NotFound",
        |env| missing(env).boxed(),
    ),
    check(
        Volumes,
        "volumes/foreign-is-ignored",
        "a volume source of another kind or driver is not recognized, and makes no call",
        |env| ready(foreign(env)).boxed(),
    ),
    check(
        Volumes,
        "volumes/no-answer-is-not-missing",
        "while the cloud gives no answer, a disk is an error, but not NotFound",
        |env| no_answer(env).boxed(),
    ),
    check(
        Volumes,
        "volumes/cancelled-look-up-is-repeatable",
        "a look-up of a disk that is dropped at any await succeeds when it is repeated",
        |env| at_each_await(env, LOOK_UP).boxed(),
    ),
];

const LOOK_UP: Cancellation<VolumeRef> = Cancellation {
    prepare: |env| {
        async {
            let actual = env.cloud.add_volume().await?;
            recognized(env, actual.source, &actual.content)
        }
        .boxed()
    },
    work: |env, volume| found(env, volume).boxed(),
    repeat: |env, volume| found(env, volume).boxed(),
};

async fn found(env: &TestEnv<'_>, volume: &VolumeRef) -> Done {
    env.volumes()?.place(volume).await?;
    Ok(())
}

fn recognized(env: &TestEnv<'_>, source: &str, content: &Value) -> Result<VolumeRef, Stop> {
    let found = env.volumes()?.recognize("pv-1", source, content);
    found.ok_or_else(|| Stop::failed(format!("{source} {content} is not recognized")))
}

async fn placed(env: &TestEnv<'_>) -> Done {
    let actual = env.cloud.add_volume().await?;
    let volume = recognized(env, actual.source, &actual.content)?;
    ensure(volume.name == "pv-1", || {
        format!("it is named {:?}", volume.name)
    })?;
    let place = env.volumes()?.place(&volume).await?;
    let (shown, label) = (place.zone_label(), actual.place.zone_label());
    ensure(
        shown == label && place.region == actual.place.region,
        || format!("it is in {:?}, not {place:?}", actual.place),
    )
}

async fn missing(env: &TestEnv<'_>) -> Done {
    let actual = env.cloud.add_volume().await?;
    let volume = recognized(env, actual.source, &actual.missing)?;
    let place = env.volumes()?.place(&volume).await;
    let kind = place.as_ref().err().map(CloudError::kind);
    ensure(kind == Some(ErrorKind::NotFound), || {
        format!("there is no such disk, but the answer is {place:?}")
    })
}

fn foreign(env: &TestEnv<'_>) -> Done {
    let before = env.calls();
    for (source, content) in [
        ("hostPath", json!({"path": "/x"})),
        (
            "csi",
            json!({"driver": "elsewhere.example.com", "volumeHandle": "vol-1"}),
        ),
        ("csi", json!({})),
        ("nfs", Value::Null),
    ] {
        let found = env.volumes()?.recognize("pv-1", source, &content);
        ensure(found.is_none(), || {
            format!("{source} {content} is recognized as {found:?}")
        })?;
    }
    let calls = env.calls().since(before);
    ensure(calls.total == 0, || {
        format!("volume sources make {} calls", calls.total)
    })
}

async fn no_answer(env: &TestEnv<'_>) -> Done {
    let actual = env.cloud.add_volume().await?;
    let volume = recognized(env, actual.source, &actual.content)?;
    for fault in [
        Fault::Unauthenticated,
        Fault::Denied,
        Fault::Unavailable,
        Fault::Timeout,
        Fault::Malformed,
    ] {
        env.inject(FaultTiming::Always, fault)?;
        let place = env.volumes()?.place(&volume).await;
        env.clear_faults();
        let kind = place.as_ref().err().map(CloudError::kind);
        ensure(kind.is_some_and(|kind| kind != ErrorKind::NotFound), || {
            format!("{fault:?}: the answer is {place:?}")
        })?;
    }
    Ok(())
}
