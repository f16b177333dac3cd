//! A value with many holders that is rarely changed.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// A value that is shared until it is changed: a clone costs a reference count, and a change makes a copy
/// only while others hold the value too.
///
/// ```
/// # use cloudkeel_api::Shared;
/// let one: Shared<Vec<u32>> = vec![1, 2].into();
/// let mut other = one.clone();
/// assert!(one.is_same_as(&other));
/// other.push(3);
/// assert_eq!((one.len(), other.len()), (2, 3));
/// ```
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Whether both are the same value in memory.
    pub fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Clone> Shared<T> {
    /// Each of these as a shared value.
    pub fn of_each(values: &[T]) -> Vec<Self> {
        values.iter().cloned().map(Self::from).collect()
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        T::default().into()
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same_as(other) || *self.0 == *other.0
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<A, T: FromIterator<A>> FromIterator<A> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = A>>(items: I) -> Self {
        T::from_iter(items).into()
    }
}

#[expect(
    clippy::into_iter_without_iter,
    reason = "`iter` is that of the value, which it derefs to"
)]
impl<'a, T> IntoIterator for &'a Shared<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&*self.0).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_equal_wherever_they_are() {
        let one: Shared<Vec<u8>> = [1, 2].into_iter().collect();
        let same: Shared<Vec<u8>> = vec![1, 2].into();
        assert!(one == same && !one.is_same_as(&same));
        assert_ne!(one, Shared::default());
        assert_eq!(format!("{one:?}"), "[1, 2]");
        assert_eq!(serde_json::to_string(&one).unwrap(), "[1,2]");
        assert_eq!((&one).into_iter().count(), 2);
    }
}
