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
    /// One "no such machine" is enough to delete a Node.
    DeleteOnFirstAbsence,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::DeleteOnFirstAbsence];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeleteOnFirstAbsence => "delete-on-first-absence",
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
