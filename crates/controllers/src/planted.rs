//! Bugs that a simulation switches on to prove that it would find them. Only builds with the feature
//! `planted-bugs` have them, and no build that is shipped has the feature.

#[cfg(feature = "planted-bugs")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    impl Bug {
        /// Plants it, in this thread, until the guard is dropped.
        pub fn plant(self) -> Planted {
            PLANTED.set(Some(self));
            Planted(())
        }
    }

    /// A bug is planted while this is kept.
    #[derive(Debug)]
    pub struct Planted(());

    impl Drop for Planted {
        fn drop(&mut self) {
            PLANTED.set(None);
        }
    }

    pub(super) fn is_planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub use switch::Planted;

/// A mistake that somebody could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A Node is deleted because one list did not show its machine.
    DeleteOnFirstAbsence,
    /// A Node is deleted as the watch showed it, without another look at it and whatever has changed.
    ActOnStaleCache,
    /// Nodes are deleted although the credential sees nothing that is known.
    IgnoreDoubt,
    /// A machine that is seen confirms every cloud, not only the one that owns it.
    ConfirmAnyCloud,
    /// A machine confirms a cloud by its ID alone, which one of another account may have too.
    ConfirmByIdAlone,
    /// Nodes are deleted as fast as they are proven gone.
    IgnorePace,
    /// A Node is deleted although somebody holds it.
    IgnoreHold,
    /// The taint goes before the addresses are written.
    TaintBeforeAddresses,
    /// A Node is matched by name in a list that is older than the Node.
    MatchInOldList,
    /// Nodes of other clouds are taken for our own.
    TouchForeignNodes,
    /// Routes are changed although the credential sees no machine of ours.
    TakeStrangersRoutes,
    /// The finalizer goes before the balancer.
    FinalizerOffEarly,
    /// The balancer is made without a finalizer.
    FinalizerOnLate,
    /// One Node gets no traffic.
    ForgetTarget,
    /// What failed is not tried again.
    ForgetFailures,
    /// A manager goes on after its lease is lost.
    IgnoreLeaseLoss,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::DeleteOnFirstAbsence,
        Self::ActOnStaleCache,
        Self::IgnoreDoubt,
        Self::ConfirmAnyCloud,
        Self::ConfirmByIdAlone,
        Self::IgnorePace,
        Self::IgnoreHold,
        Self::TaintBeforeAddresses,
        Self::MatchInOldList,
        Self::TouchForeignNodes,
        Self::TakeStrangersRoutes,
        Self::FinalizerOffEarly,
        Self::FinalizerOnLate,
        Self::ForgetTarget,
        Self::ForgetFailures,
        Self::IgnoreLeaseLoss,
    ];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeleteOnFirstAbsence => "delete-on-first-absence",
            Self::ActOnStaleCache => "act-on-stale-cache",
            Self::IgnoreDoubt => "ignore-doubt",
            Self::ConfirmAnyCloud => "confirm-any-cloud",
            Self::ConfirmByIdAlone => "confirm-by-id-alone",
            Self::IgnorePace => "ignore-pace",
            Self::IgnoreHold => "ignore-hold",
            Self::TaintBeforeAddresses => "taint-before-addresses",
            Self::MatchInOldList => "match-in-old-list",
            Self::TouchForeignNodes => "touch-foreign-nodes",
            Self::TakeStrangersRoutes => "take-strangers-routes",
            Self::FinalizerOffEarly => "finalizer-off-early",
            Self::FinalizerOnLate => "finalizer-on-late",
            Self::ForgetTarget => "forget-target",
            Self::ForgetFailures => "forget-failures",
            Self::IgnoreLeaseLoss => "ignore-lease-loss",
        }
    }

    /// Whether it is planted now.
    pub fn is_planted(self) -> bool {
        #[cfg(feature = "planted-bugs")]
        return switch::is_planted(self);
        #[cfg(not(feature = "planted-bugs"))]
        return false;
    }
}
