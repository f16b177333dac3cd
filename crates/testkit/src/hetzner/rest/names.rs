//! Names and labels of things: what they may be, and new ones. A name is used once in a project, by
//! things of the same kind.

use cloudkeel_emulation::history::Table;
use serde::Deserialize;

use super::super::refusal::Refusal;
use super::super::world::{Certificate, Labels, LoadBalancer, Moment, Network, Server, edit};
use super::labels;
use super::query::Listed;

/// What a thing is called from now on. What is not said stays; labels are replaced as a whole.
#[derive(Deserialize)]
pub(super) struct Update {
    name: Option<String>,
    labels: Option<Labels>,
}

/// Something that people call by a name and mark with labels.
pub(super) trait Named: Listed + Clone {
    fn name_mut(&mut self) -> &mut String;
    fn labels_mut(&mut self) -> &mut Labels;

    /// Refuses a name that nothing of this kind can have.
    fn check_name(name: &str) -> Result<(), Refusal> {
        match name {
            "" => Err(Refusal::invalid("name", "must not be empty")),
            _ => Ok(()),
        }
    }
}

macro_rules! named {
    ($($thing:ty { $($own:tt)* })+) => {
        $(impl Named for $thing {
            fn name_mut(&mut self) -> &mut String {
                &mut self.name
            }
            fn labels_mut(&mut self) -> &mut Labels {
                &mut self.labels
            }
            $($own)*
        })+
    };
}

named! {
    Certificate {}
    LoadBalancer {}
    Network {}
    Server {
        fn check_name(name: &str) -> Result<(), Refusal> {
            if is_hostname(name) {
                return Ok(());
            }
            Err(Refusal::invalid("name", "must be a valid hostname"))
        }
    }
}

/// Refuses a new thing because of its name or its labels.
pub(super) fn check_new<T: Named>(
    table: &Table<T>,
    name: &str,
    labels: &Labels,
) -> Result<(), Refusal> {
    labels::check(labels)?;
    T::check_name(name)?;
    check_free(table, name, None)
}

/// Refuses a name that another thing has already.
pub(in super::super) fn check_free<T: Listed>(
    table: &Table<T>,
    name: &str,
    own: Option<u64>,
) -> Result<(), Refusal> {
    let mut others = table.iter().filter(|(id, _)| Some(*id) != own);
    if others.any(|(_, other)| other.name() == name) {
        return Err(Refusal::not_unique("name"));
    }
    Ok(())
}

impl Update {
    /// Gives a thing its new name and labels, or says why it cannot have them.
    pub(super) fn apply<T: Named>(
        self,
        table: &mut Table<T>,
        id: u64,
        now: Moment,
    ) -> Result<(), Refusal> {
        if let Some(labels) = &self.labels {
            labels::check(labels)?;
        }
        if let Some(name) = &self.name {
            T::check_name(name)?;
            check_free(table, name, Some(id))?;
        }
        edit(table, id, now, |thing| {
            if let Some(name) = self.name {
                *thing.name_mut() = name;
            }
            if let Some(labels) = self.labels {
                *thing.labels_mut() = labels;
            }
        });
        Ok(())
    }
}

fn is_hostname(name: &str) -> bool {
    let good = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(good)
}
