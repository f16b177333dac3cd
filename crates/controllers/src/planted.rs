//! Bugs that the simulation switches on to prove that it would find them. Only builds with the feature `planted-bugs`
//! have them, and no released build has the feature.

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

macro_rules! bugs {
    ($($(#[$doc:meta])+ $bug:ident = $name:literal,)+) => {
        /// A bug that the simulation has to find.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug {
            $($(#[$doc])+ $bug,)+
        }

        impl Bug {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$bug),+];

            /// Its name on a command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)+
                }
            }
        }
    };
}

bugs! {
    /// A Node is deleted because one list did not show its instance.
    DeleteOnFirstAbsence = "delete-on-first-absence",
    /// A Node is deleted as the watch showed it, although it has changed since.
    ActOnStaleCache = "act-on-stale-cache",
    /// Nodes are deleted although the credential sees nothing that is known.
    IgnoreDoubt = "ignore-doubt",
    /// An instance that is seen confirms every cloud, not only the one that owns it.
    ConfirmAnyCloud = "confirm-any-cloud",
    /// An instance confirms a cloud by its ID alone, which one of another account may have too.
    ConfirmByIdAlone = "confirm-by-id-alone",
    /// Nodes are deleted as fast as they are proven gone.
    IgnoreDeletionLimiter = "ignore-deletion-limiter",
    /// A Node is deleted although an annotation holds it.
    IgnoreHold = "ignore-hold",
    /// A Node or a Service is worked on although it is paused.
    IgnorePause = "ignore-pause",
    /// A balancer is deleted although its Service asks for it to stay.
    IgnoreRetain = "ignore-retain",
    /// The taint goes before the addresses are written.
    TaintBeforeAddresses = "taint-before-addresses",
    /// A Node is matched by name in a list that is older than the Node.
    MatchInOldList = "match-in-old-list",
    /// A Node is matched by name although the credential sees no instance of a Ready Node.
    MatchInAnyProject = "match-in-any-project",
    /// Nodes of other clouds are taken for our own.
    TouchForeignNodes = "touch-foreign-nodes",
    /// An instance is taken for that of a Node by its ID alone, which one of another account may have too.
    ShowInstanceOfSameId = "show-instance-of-same-id",
    /// A route leads to the Node of another cloud whose instance has the same ID.
    MatchRoutesInAnyCloud = "match-routes-in-any-cloud",
    /// Routes are changed although the credential sees no instance of this cluster.
    TakeForeignRoutes = "take-foreign-routes",
    /// The finalizer is removed before the balancer is deleted.
    FinalizerOffEarly = "finalizer-off-early",
    /// The balancer is created without a finalizer.
    FinalizerOnLate = "finalizer-on-late",
    /// A balancer is created although the credential sees no instance of this cluster.
    CreateBalancerAnywhere = "create-balancer-anywhere",
    /// A balancer whose address is published is created again although the credential sees no instance of this cluster.
    RecreateAnywhere = "recreate-anywhere",
    /// A balancer that one check did not find counts as gone.
    BelieveFirstAbsence = "believe-first-absence",
    /// That there is no such balancer counts as its deletion.
    BelieveVanished = "believe-vanished",
    /// A Node that still waits for its instance replaces one that leaves.
    CountWaitingNodes = "count-waiting-nodes",
    /// A Node that is not managed and has no ID is a target.
    CountUnmanagedNodes = "count-unmanaged-nodes",
    /// A Node is attributed to the only cloud that shows it, although the others were listed before it joined, and that cloud
    /// shows instances of others.
    LearnFromOldLists = "learn-from-old-lists",
    /// One Node gets no traffic.
    ForgetTarget = "forget-target",
    /// What failed is not retried.
    ForgetFailures = "forget-failures",
    /// A manager goes on after its lease is lost.
    IgnoreLeaseLoss = "ignore-lease-loss",
    /// Only a timer ends the permission to write, and a process that stood still runs on before its timers do.
    FenceByTimerAlone = "fence-by-timer-alone",
}

impl Bug {
    /// Whether it is planted now.
    pub fn is_planted(self) -> bool {
        #[cfg(feature = "planted-bugs")]
        return switch::is_planted(self);
        #[cfg(not(feature = "planted-bugs"))]
        return false;
    }
}
