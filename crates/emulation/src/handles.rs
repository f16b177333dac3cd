//! What tests and other processes turn on every emulated cloud.

/// Writes the functions by which a cloud is steered and looked at, and [`Steerable`](crate::Steerable) in their
/// words. They are the cloud's own, so that nobody who has one needs a trait to steer it.
///
/// The cloud brings `with(&self, |world, now| …)`, which reaches under its lock for a world with `settings`,
/// `tokens` and a `door`, and its own `add_project(&self, &str)`.
#[macro_export]
macro_rules! handles {
    ($vis:vis $Cloud:ident: $Settings:ident, $Operation:ident, $Fault:ident) => {
        /// How often what was asked for.
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
            /// How it behaves now.
            $vis fn settings(&self) -> $Settings {
                self.with(|world, _| world.settings.clone())
            }

            /// Makes it behave otherwise from now on. The seed counts only from the start.
            $vis fn change_settings(&self, change: impl FnOnce(&mut $Settings)) {
                self.with(|world, _| change(&mut world.settings));
            }

            /// Lets a token into a project. A token that was good for another project is so no longer:
            /// this is how a credential is swapped under its user's feet.
            $vis fn grant(&self, token: &str, project: &str, permission: $crate::Permission) {
                self.with(|world, _| world.tokens.set(token, project, permission));
            }

            /// Makes a token worthless.
            $vis fn revoke(&self, token: &str) {
                self.with(|world, _| world.tokens.revoke(token));
            }

            /// The script of faults.
            $vis const fn faults(&self) -> Faults<'_> {
                Faults::of(self)
            }

            /// How often it was asked for what, since it was made or last reset.
            $vis fn calls(&self) -> CallCounts {
                self.with(|world, _| world.door.log.counts().clone())
            }

            /// Every call in order, as far back as the log reaches.
            $vis fn call_log(&self) -> Vec<LoggedCall> {
                self.with(|world, _| world.door.log.to_vec())
            }

            /// Starts counting and logging afresh.
            $vis fn reset_calls(&self) {
                self.with(|world, _| world.door.log.reset());
            }
        }

        impl $crate::Steerable for $Cloud {
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
