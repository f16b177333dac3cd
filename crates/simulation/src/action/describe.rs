//! Actions in words.

use std::fmt;

use super::Action;

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join(machine) => write!(f, "machine {machine} appears and joins"),
            Self::Destroy(machine) => write!(f, "machine {machine} is destroyed"),
            Self::Rebuild(machine) => write!(f, "machine {machine} is rebuilt, and joins again"),
            Self::PowerOff(machine) => write!(f, "machine {machine} is switched off"),
            Self::PowerOn(machine) => write!(f, "machine {machine} is switched on"),
            Self::StopKubelet(machine) => {
                write!(f, "the kubelet of machine {machine} stops reporting")
            }
            Self::StartKubelet(machine) => {
                write!(f, "the kubelet of machine {machine} reports again")
            }
            Self::ChangeAddress(machine) => write!(f, "machine {machine} gets another address"),
            Self::ToggleExclusion(machine) => {
                write!(f, "the exclusion of node {machine} is toggled")
            }
            Self::ToggleAutoscalerTaint(machine) => {
                write!(f, "the autoscaler's taint on node {machine} is toggled")
            }
            Self::ToggleHold(machine) => write!(f, "the hold on node {machine} is toggled"),
            Self::ToggleCordon => write!(f, "the cordon of all nodes is toggled"),
            Self::CreateService(service) => write!(f, "service {service} is created"),
            Self::ChangePorts(service) => write!(f, "service {service} gets other ports"),
            Self::ChangeServiceType(service) => write!(f, "service {service} changes its type"),
            Self::Annotate {
                service,
                annotation,
                value,
            } => write!(
                f,
                "service {service} gets {} with the value {value:?}",
                annotation.key()
            ),
            Self::PauseService(service) => write!(f, "service {service} is paused"),
            Self::ChangeFamilies(service) => write!(f, "service {service} changes its families"),
            Self::DeleteService(service) => write!(f, "service {service} is deleted"),
            Self::EditBalancer(service) => {
                write!(f, "another client edits the balancer of service {service}")
            }
            Self::DeleteRoute(machine) => {
                write!(f, "another client deletes the route of node {machine}")
            }
            fault => fault.describe_cloud_fault(f),
        }
    }
}

impl Action {
    /// What goes wrong with a cloud.
    fn describe_cloud_fault(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CloudFault { on, fault, lasts } => {
                let on = on.map_or_else(|| "every call".to_owned(), |on| format!("{on}"));
                write!(f, "cloud: {on} meets {fault:?} for {lasts:?}")
            }
            Self::SwapCredential { lasts } => {
                write!(
                    f,
                    "cloud: the credential sees another project for {lasts:?}"
                )
            }
            Self::ReplaceToken { of, by, lasts } => {
                let (of, by) = (of.cloud_name(), by.cloud_name());
                write!(
                    f,
                    "cloud: the token of {of} is replaced by that of {by} for {lasts:?}"
                )
            }
            Self::RotateToken { of, revoked_after } => {
                let of = of.cloud_name();
                write!(
                    f,
                    "cloud: the token of {of} is rotated, and the old one revoked after {revoked_after:?}"
                )
            }
            Self::InAccount(account, action) => write!(f, "{} {action}", account.cloud_name()),
            Self::HideZone { machine, lasts } => {
                write!(
                    f,
                    "cloud: hides machine {machine} and another for {lasts:?}"
                )
            }
            Self::LaggingCloud { by, lasts } => {
                write!(f, "cloud: reads lag by {by:?} for {lasts:?}")
            }
            fault => fault.describe_api_fault(f),
        }
    }

    /// What goes wrong with the API.
    fn describe_api_fault(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiFault {
                manager_id,
                kind,
                percent,
                lasts,
            } => write!(
                f,
                "API: {percent} % of the requests of {} meet {kind:?} for {lasts:?}",
                manager_id.name()
            ),
            Self::Disconnect { manager_id, lasts } => {
                write!(f, "API: {} is cut off for {lasts:?}", manager_id.name())
            }
            Self::Outage { lasts } => write!(f, "API: nothing reaches it for {lasts:?}"),
            Self::EndWatches(manager_id) => {
                write!(f, "API: the watches of {} end", manager_id.name())
            }
            Self::StallWatches {
                manager_id,
                resource,
                lasts,
            } => write!(
                f,
                "API: the watches of {} for {} stall for {lasts:?}",
                manager_id.name(),
                resource.unwrap_or("everything")
            ),
            Self::StaleLists {
                manager_id,
                age,
                lasts,
            } => write!(
                f,
                "API: the watches of {} end, and its lists are {age:?} old for {lasts:?}",
                manager_id.name()
            ),
            Self::Throttle { percent, lasts } => {
                write!(f, "API: {percent} % of all requests meet 429 for {lasts:?}")
            }
            fault => fault.describe_manager_fault(f),
        }
    }

    /// What goes wrong with a manager.
    fn describe_manager_fault(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash {
                manager_id,
                back_after,
            } => {
                write!(
                    f,
                    "{} crashes, and is back after {back_after:?}",
                    manager_id.name()
                )
            }
            Self::CrashAt {
                manager_id,
                point,
                nth,
            } => {
                write!(
                    f,
                    "{} crashes at {point:?} number {nth} from now",
                    manager_id.name()
                )
            }
            Self::Stop {
                manager_id,
                back_after,
            } => {
                write!(
                    f,
                    "{} is stopped, and is back after {back_after:?}",
                    manager_id.name()
                )
            }
            Self::JumpClock {
                manager_id,
                seconds,
            } => {
                write!(
                    f,
                    "the wall clock of {} jumps by {seconds} s",
                    manager_id.name()
                )
            }
            Self::Freeze { manager_id, lasts } => {
                write!(f, "{} is frozen for {lasts:?}", manager_id.name())
            }
            Self::FreezeLeader { lasts } => write!(f, "the leader is frozen for {lasts:?}"),
            _ => Ok(()),
        }
    }
}
