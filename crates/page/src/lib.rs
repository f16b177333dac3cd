//! A live page that shows what a manager sees and does.
//!
//! The page is a few files inside the binary. It fetches one document, the [`PageData`], every second, and draws it.
//! [`Source`] provides the data; [`Buttons`] executes the buttons, which only the demo has.

mod assets;
mod data;
mod serve;
mod service_state;
mod summary;
mod window;

pub use data::{
    Action, BalancerRow, Budget, CloudRow, ControllerRow, EventRow, Leader, Level, ManagerRow,
    NodeRow, PageData, RouteRow, Step, StepState, TargetRow,
};
pub use serve::{Buttons, Press, Source, router};
pub use service_state::{ServiceFacts, SyncState, Unhealthy};
pub use summary::{Problem, Summary};
pub use window::{View, Window, Windows};
