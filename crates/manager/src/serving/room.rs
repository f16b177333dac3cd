//! Room for so many connections, and no more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::activity::Activity;

/// How often a full room is looked over.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Where connections stay. When there is no room left, the oldest one that is not being answered has to
/// go, so that nobody can keep others out by just being there.
#[derive(Debug, Clone)]
pub(super) struct Room(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    guests: Mutex<Guests>,
    left: Notify,
}

#[derive(Debug, Default)]
struct Guests {
    /// In the order they came.
    present: BTreeMap<u64, Guest>,
    came: u64,
}

#[derive(Debug)]
struct Guest {
    activity: Activity,
    evict: CancellationToken,
}

/// A place in the room, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Room,
    number: u64,
}

impl Room {
    pub(super) fn for_guests(most: usize) -> Self {
        Self(Arc::new(Inner {
            most,
            guests: Mutex::default(),
            left: Notify::new(),
        }))
    }

    /// Waits for a place. `evict` is cancelled when it is needed for somebody else.
    pub(super) async fn enter(&self, activity: &Activity, evict: &CancellationToken) -> Place {
        loop {
            if let Some(place) = self.try_enter(activity, evict) {
                return place;
            }
            // Those asked to leave do so at once; those being answered may become quiet and be asked.
            let _ = tokio::time::timeout(LOOK_AGAIN, self.0.left.notified()).await;
        }
    }

    fn try_enter(&self, activity: &Activity, evict: &CancellationToken) -> Option<Place> {
        let mut guests = self.0.guests.lock().unwrap_or_else(PoisonError::into_inner);
        if guests.present.len() >= self.0.most {
            let mut present = guests.present.values();
            let one_leaves = present.clone().any(|guest| guest.evict.is_cancelled());
            let oldest = present.find(|guest| !guest.activity.is_answering());
            if let Some(oldest) = oldest.filter(|_| !one_leaves) {
                oldest.evict.cancel();
            }
            return None;
        }
        let number = guests.came;
        guests.came += 1;
        let guest = Guest {
            activity: activity.clone(),
            evict: evict.clone(),
        };
        guests.present.insert(number, guest);
        Some(Place {
            room: self.clone(),
            number,
        })
    }

    fn leave(&self, number: u64) {
        let mut guests = self.0.guests.lock().unwrap_or_else(PoisonError::into_inner);
        guests.present.remove(&number);
        self.0.left.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Visitor {
        activity: Activity,
        evict: CancellationToken,
        place: Place,
    }

    async fn visit(room: &Room) -> Visitor {
        let (activity, evict) = (Activity::begin(), CancellationToken::new());
        let place = room.enter(&activity, &evict).await;
        Visitor {
            activity,
            evict,
            place,
        }
    }

    async fn asked_to_leave(visitor: &Visitor) {
        let asked = visitor.evict.cancelled();
        let asked = tokio::time::timeout(Duration::from_secs(10), asked).await;
        assert!(asked.is_ok(), "nobody asked it to leave");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_quiet_guest_leaves_when_the_room_is_full() {
        let room = Room::for_guests(3);
        let [first, second, third] = [visit(&room).await, visit(&room).await, visit(&room).await];
        let answering = first.activity.request_began();
        let newcomer = tokio::spawn({
            let room = room.clone();
            async move { visit(&room).await }
        });
        asked_to_leave(&second).await;
        assert!(!first.evict.is_cancelled(), "it is being answered");
        drop(second.place);
        let newcomer = newcomer.await.unwrap();
        assert!(!third.evict.is_cancelled(), "one place was enough");
        drop((answering, newcomer, first, third));
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_are_being_answered_a_newcomer_waits_until_one_is_done() {
        let room = Room::for_guests(1);
        let guest = visit(&room).await;
        let answering = guest.activity.request_began();
        let newcomer = tokio::spawn({
            let room = room.clone();
            async move { visit(&room).await }
        });
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!guest.evict.is_cancelled());
        drop(answering);
        asked_to_leave(&guest).await;
        drop(guest.place);
        assert!(!newcomer.await.unwrap().evict.is_cancelled());
    }
}
