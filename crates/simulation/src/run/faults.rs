//! How faults begin and end.

use std::time::Duration;

use anyhow::{Context as _, Result};
use cloudkeel_testkit::simulated_cloud::{
    Consistency, Fault, FaultMatch, FaultRule, SimulatedCloud,
};
use tokio::time::Instant;

use super::Run;
use crate::accounts::Account;
use crate::action::{Action, ManagerId};
use crate::api_faults::ApiFaults;
use crate::fault_class::FaultClass;
use crate::fixtures::{OTHER_PROJECT, default_settings};
use crate::managers::Manager;

/// Something that ends by itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FaultEnd {
    Fault(Account, FaultRule),
    Credential(Account),
    Token(Account, Account),
    /// The token is not good any more.
    Revoked(String),
    Hidden,
    Lag(Account),
    Running(ManagerId),
}

impl Run {
    pub(super) async fn perform(&mut self, action: &Action) -> Result<()> {
        if self.is_too_early(action).await? {
            return Ok(());
        }
        match action {
            Action::CloudFault { .. }
            | Action::SwapCredential { .. }
            | Action::LaggingCloud { .. } => self.fault_cloud(Account::First, action),
            Action::InAccount(account, action) => self.fault_cloud(*account, action),
            Action::ReplaceToken { of, by, lasts } => {
                self.backends.checker.expect_stale_reads(*lasts);
                self.replace_token(*of, Some(*by));
                self.end_later(*lasts, FaultEnd::Token(*of, *by));
            }
            Action::RotateToken { of, revoked_after } => {
                let old = self.backends.clouds.token(*of);
                self.backends.clouds.rotate_token(*of);
                self.grant_tokens();
                self.end_later(*revoked_after, FaultEnd::Revoked(old));
            }
            Action::HideZone { machine, lasts } => {
                let hidden = self.environment.hide(*machine).await?;
                self.backends.checker.expect_stale_reads(*lasts);
                self.show_machines();
                let cloud = self.backends.clouds.of_machine(*machine);
                cloud.change_settings(|settings| settings.hidden = hidden);
                self.end_later(*lasts, FaultEnd::Hidden);
            }
            Action::Outage { lasts } => {
                self.environment.cut_off(*lasts);
                for manager in &self.managers {
                    manager.api_faults.disconnect(*lasts);
                }
            }
            _ => {
                self.fault_manager(action);
                self.environment
                    .act(action)
                    .await
                    .with_context(|| action.to_string())?;
            }
        }
        Ok(())
    }

    /// A cluster without a Node of the account cannot know which project is its own, so no other one is shown to it.
    async fn is_too_early(&self, action: &Action) -> Result<bool> {
        let account = match action {
            Action::SwapCredential { .. } => Account::First,
            Action::InAccount(account, action)
                if matches!(**action, Action::SwapCredential { .. }) =>
            {
                *account
            }
            Action::ReplaceToken { of, .. } => *of,
            _ => return Ok(false),
        };
        Ok(!self.environment.has_initialised_node(account).await?)
    }

    pub(super) fn fault_cloud(&mut self, account: Account, action: &Action) {
        let cloud = self.backends.clouds.of(account);
        match action {
            Action::CloudFault { on, fault, lasts } => {
                let rule = FaultRule {
                    on: on.map_or_else(FaultMatch::any, FaultMatch::from),
                    times: None,
                    fault: fault.clone(),
                };
                cloud.faults().add(rule.clone());
                if shows_stale_state(fault) {
                    self.backends.checker.expect_stale_reads(*lasts);
                }
                self.end_later(*lasts, FaultEnd::Fault(account, rule));
            }
            Action::SwapCredential { lasts } => {
                self.backends.checker.expect_stale_reads(*lasts);
                self.swap_credential(account, true);
                self.end_later(*lasts, FaultEnd::Credential(account));
            }
            Action::LaggingCloud { by, lasts } => {
                let by = *by;
                self.backends.checker.expect_stale_reads(*lasts + by);
                cloud.change_settings(|settings| settings.consistency = Consistency::both(by));
                self.end_later(*lasts, FaultEnd::Lag(account));
            }
            _ => {}
        }
    }

    pub(super) fn fault_manager(&mut self, action: &Action) {
        match *action {
            Action::Crash {
                manager_id,
                back_after,
            } => {
                self.crash(manager_id);
                self.end_later(back_after, FaultEnd::Running(manager_id));
            }
            Action::Stop {
                manager_id,
                back_after,
            } => {
                if self.manager(manager_id).is_alive() {
                    self.manager(manager_id).stop();
                    self.backends.checker.met(FaultClass::Stop);
                }
                self.end_later(back_after, FaultEnd::Running(manager_id));
            }
            Action::JumpClock {
                manager_id,
                seconds,
            } => {
                self.manager(manager_id).clock.jump(seconds);
                if self.manager(manager_id).is_alive() {
                    self.backends.checker.met(FaultClass::ClockJump);
                }
            }
            Action::CrashAt {
                manager_id,
                point,
                nth,
            } => {
                if let Some(crash_switch) = self.manager(manager_id).crash_switch() {
                    crash_switch.crash_at(point, nth);
                }
            }
            Action::Freeze { manager_id, lasts } => self.freeze(manager_id, lasts),
            Action::FreezeLeader { lasts } => {
                let checker = &self.backends.checker;
                let leader = ManagerId::BOTH.into_iter().find(|id| checker.leads(*id));
                if let Some(leader) = leader {
                    self.freeze(leader, lasts);
                }
            }
            _ => self.fault_api(action),
        }
    }

    /// What goes wrong between a manager and the API.
    pub(super) fn fault_api(&mut self, action: &Action) {
        match *action {
            Action::ApiFault {
                manager_id,
                kind,
                percent,
                lasts,
            } => self.api_faults(manager_id).add(kind, percent, lasts),
            Action::Disconnect { manager_id, lasts } => {
                self.api_faults(manager_id).disconnect(lasts);
            }
            Action::EndWatches(manager_id) => self.api_faults(manager_id).end_watches(),
            Action::StallWatches {
                manager_id,
                resource,
                lasts,
            } => self.api_faults(manager_id).stall(resource, lasts),
            Action::StaleLists {
                manager_id,
                age,
                lasts,
            } => self.api_faults(manager_id).serve_stale_lists(age, lasts),
            Action::Throttle { percent, lasts } => {
                for manager in &self.managers {
                    manager.api_faults.throttle(percent, lasts);
                }
            }
            _ => {}
        }
    }

    pub(super) fn api_faults(&mut self, manager_id: ManagerId) -> &ApiFaults {
        &self.manager(manager_id).api_faults
    }

    /// A process stands still for a while. That counts when it wakes up.
    pub(super) fn freeze(&mut self, manager_id: ManagerId, lasts: Duration) {
        let leads = self.backends.checker.leads(manager_id);
        if let Some(crash_switch) = self.manager(manager_id).crash_switch() {
            crash_switch.freeze(Instant::now() + lasts, leads);
        }
    }

    pub(super) fn manager(&mut self, manager_id: ManagerId) -> &mut Manager {
        let [a, b] = &mut self.managers;
        match manager_id {
            ManagerId::A => a,
            ManagerId::B => b,
        }
    }

    /// Ends a process, if one runs. One that has crashed at a point is noted as that.
    pub(super) fn crash(&mut self, manager_id: ManagerId) {
        let manager = self.manager(manager_id);
        let class = if manager.has_crashed() {
            Some(FaultClass::CrashAtWrite)
        } else {
            manager.is_alive().then_some(FaultClass::Crash)
        };
        manager.crash();
        if let Some(class) = class {
            self.backends.checker.manager_crashed(manager_id);
            self.backends.checker.met(class);
        }
    }

    pub(super) fn end_later(&mut self, lasts: Duration, fault_end: FaultEnd) {
        self.fault_ends.push((Instant::now() + lasts, fault_end));
    }

    pub(super) fn swap_credential(&self, account: Account, swapped: bool) {
        let project = if swapped {
            OTHER_PROJECT
        } else {
            SimulatedCloud::PROJECT
        };
        self.backends.clouds.set_project(account, project);
        self.backends.checker.set_project_swapped(account, swapped);
    }

    /// Lets every cloud know the tokens of the configuration.
    pub(super) fn grant_tokens(&self) {
        for account in self.backends.clouds.layout.accounts() {
            let swapped = self.backends.checker.is_project_swapped(*account);
            self.swap_credential(*account, swapped);
        }
    }

    pub(super) fn replace_token(&self, account: Account, by: Option<Account>) {
        let replaced = by.is_some();
        self.backends.clouds.replace_token(account, by);
        self.backends.checker.set_token_replaced(account, replaced);
    }

    pub(super) fn end_expired_faults(&mut self) {
        let now = Instant::now();
        let over: Vec<_> = self
            .fault_ends
            .extract_if(.., |(at, _)| *at <= now)
            .map(|(_, fault_end)| fault_end)
            .collect();
        for fault_end in over {
            self.end(&fault_end);
        }
    }

    pub(super) fn end(&mut self, fault_end: &FaultEnd) {
        match fault_end {
            FaultEnd::Fault(account, rule) => {
                let faults = self.backends.clouds.of(*account).faults();
                let mut rules = faults.rules();
                if let Some(place) = rules.iter().position(|other| other == rule) {
                    rules.remove(place);
                }
                faults.clear();
                for rule in rules {
                    faults.add(rule);
                }
            }
            FaultEnd::Credential(account) => {
                self.swap_credential(*account, self.still_lasts(fault_end));
            }
            FaultEnd::Token(account, by) => {
                let by = self.still_lasts(fault_end).then_some(*by);
                self.replace_token(*account, by);
            }
            FaultEnd::Revoked(token) => {
                for cloud in self.backends.clouds.all() {
                    cloud.revoke(token);
                }
            }
            FaultEnd::Hidden if !self.still_lasts(fault_end) => self.show_everything(),
            FaultEnd::Lag(account) if !self.still_lasts(fault_end) => {
                self.end_lag(*account);
            }
            FaultEnd::Hidden | FaultEnd::Lag(_) | FaultEnd::Running(_) => {}
        }
    }

    /// Whether the same is to end at another time too.
    pub(super) fn still_lasts(&self, fault_end: &FaultEnd) -> bool {
        self.fault_ends.iter().any(|(_, other)| other == fault_end)
    }

    /// From now on no machine is hidden.
    pub(super) fn show_everything(&mut self) {
        self.show_machines();
        self.environment.shield_nothing();
    }

    pub(super) fn show_machines(&self) {
        for cloud in self.backends.clouds.all() {
            cloud.change_settings(|settings| settings.hidden.clear());
        }
    }

    /// From now on reads do not lag.
    pub(super) fn end_lag(&self, account: Account) {
        let calm = default_settings().consistency;
        let cloud = self.backends.clouds.of(account);
        cloud.change_settings(|settings| settings.consistency = calm);
    }
}

/// Whether a fault shows something else than is there.
const fn shows_stale_state(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::TruncatedPage
            | Fault::LostNextPage
            | Fault::EmptyList
            | Fault::Stale { .. }
            | Fault::OtherProject { .. }
            | Fault::Status { status: 404, .. }
            | Fault::BrokenAfter
    )
}
