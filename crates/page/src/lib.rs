//! A live page: what a manager sees and does, for people who look before they read.
//!
//! The page is a few files inside the binary. It asks for one document, the [`Picture`], every second,
//! and draws it. Whoever shows a picture implements [`Source`]; whoever also lets people press buttons,
//! as the demo does, implements [`Buttons`].

mod assets;
mod picture;
mod serve;
mod service_state;
mod summary;

pub use picture::{
    Action, BalancerRow, Budget, CloudRow, ControllerRow, EventRow, Leader, Level, ManagerRow,
    NodeRow, Picture, RouteRow, Step, StepState, TargetRow,
};
pub use serve::{Buttons, Press, Source, router};
pub use service_state::{ServiceFacts, SyncState};
pub use summary::{Problem, Summary};
