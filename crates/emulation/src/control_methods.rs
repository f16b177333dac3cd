//! The functions that tests call on every emulated cloud.

/// Writes the functions by which tests control a cloud and read what it did, and [`Controllable`](crate::Controllable)
/// in their terms. They are the cloud's own, so that its users need not import a trait.
///
/// The cloud brings `with(&self, |state, now| …)`, which reaches under its lock for a state with `settings`,
/// `tokens` and a `gateway`, and its own `add_project(&self, &str)`.
#[macro_export]
macro_rules! control_methods {
    ($vis:vis $Cloud:ident: $Settings:ident, $Operation:ident, $Fault:ident) => {
        /// How often the cloud was called for what.
        $vis type CallCounts = $crate::CallCounts<$Operation>;
        /// One call, as the log shows it.
        $vis type LoggedCall = $crate::LoggedCall<$Operation, $Fault>;
        /// Which calls meet a fault.
        $vis type FaultMatch = $crate::FaultMatch<$Operation>;
        /// One line of the script of faults.
        $vis type FaultRule = $crate::FaultRule<$Operation, $Fault>;
        /// The script of faults.
        $vis type Faults<'a> = $crate::Faults<'a, $Cloud>;

        impl $Cloud {
            /// Its settings now.
            $vis fn settings(&self) -> $Settings {
                self.with(|state, _| state.settings.clone())
            }

            /// Changes its settings from now on. The seed counts only from the start.
            $vis fn change_settings(&self, change: impl FnOnce(&mut $Settings)) {
                self.with(|state, _| change(&mut state.settings));
            }

            /// Admits a token to a project. A token that was good for another project is so no longer, which is how
            /// a test exchanges what a credential sees.
            $vis fn grant(&self, token: &str, project: &str, permission: $crate::Permission) {
                self.with(|state, _| state.tokens.set(token, project, permission));
            }

            /// Makes a token worthless.
            $vis fn revoke(&self, token: &str) {
                self.with(|state, _| state.tokens.revoke(token));
            }

            /// The script of faults.
            $vis const fn faults(&self) -> Faults<'_> {
                Faults::of(self)
            }

            /// How often it was called for what, since it was made or last reset.
            $vis fn calls(&self) -> CallCounts {
                self.with(|state, _| state.gateway.log.counts().clone())
            }

            /// Every call in order, as far back as the log reaches.
            $vis fn call_log(&self) -> Vec<LoggedCall> {
                self.with(|state, _| state.gateway.log.to_vec())
            }

            /// Starts counting and logging afresh.
            $vis fn reset_calls(&self) {
                self.with(|state, _| state.gateway.log.reset());
            }
        }

        impl $crate::Controllable for $Cloud {
            type Settings = $Settings;

            fn settings(&self) -> $Settings {
                self.settings()
            }

            fn set_settings(&self, settings: $Settings) {
                self.change_settings(|now| *now = settings);
            }

            fn add_project(&self, name: &str) {
                self.add_project(name);
            }

            fn grant(&self, token: &str, project: &str, permission: $crate::Permission) {
                self.grant(token, project, permission);
            }

            fn revoke(&self, token: &str) {
                self.revoke(token);
            }
        }
    };
}

/// Writes how the gateway reaches the state of a cloud, inside its `impl Emulated`.
///
/// The cloud brings `with(&self, |state, now| …)`, as for [`control_methods!`](crate::control_methods), and settings with
/// `latency` and `log_capacity`.
#[macro_export]
macro_rules! gateway_methods {
    () => {
        fn with_gateway<R>(
            &self,
            act: impl FnOnce(&mut $crate::Gateway<Self::Operation, Self::Fault>) -> R,
        ) -> R {
            self.with(|state, _| act(&mut state.gateway))
        }

        fn gateway_settings(&self) -> $crate::GatewaySettings {
            self.with(|state, _| $crate::GatewaySettings {
                latency: state.settings.latency,
                log_capacity: state.settings.log_capacity,
            })
        }
    };
}
