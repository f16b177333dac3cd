//! What a cloud brings to be emulated.

use std::future::Future;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Answer, ApiOperation, Behaviour, Door, Faults, ListFault, Permission, ScriptedFault};

/// A call, as it arrived.
#[derive(Debug, Clone)]
pub struct Arrival<O> {
    /// What is asked for.
    pub operation: O,
    /// The ID in the path, if there is one.
    pub resource: Option<String>,
    /// The query, as it was sent.
    pub query: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// What was decided about a call before anything else.
#[derive(Debug)]
pub struct Admitted<C> {
    /// What every answer to it carries, such as how many more calls there may be.
    pub headers: Vec<(HeaderName, String)>,
    /// Who calls, or the refusal.
    pub entry: Result<C, Answer>,
}

/// What is wrong with a request that is none of the API's own.
#[derive(Debug)]
pub enum Complaint {
    /// There is nothing at this path.
    NoSuchPath(Method, String),
    /// There is something at this path, but not with this method.
    NoSuchMethod(Method, String),
    /// The body makes no sense.
    Unreadable(String),
    /// The cloud refused, and says so itself.
    Refused(Answer),
}

/// A cloud that is emulated: what is its own, beside the door that all of them have.
///
/// Clones are the same cloud.
pub trait Emulated: Clone + Send + Sync + 'static {
    /// The calls that it understands, written by [`operations!`](crate::operations).
    type Operation: ApiOperation;
    /// What can go wrong with them, written by [`faults!`](crate::faults).
    type Fault: ScriptedFault;
    /// Somebody who was let in.
    type Caller: Send + Sync;

    /// Looks at the state of its door, or changes it, under the cloud's lock.
    fn with_door<R>(&self, act: impl FnOnce(&mut Door<Self::Operation, Self::Fault>) -> R) -> R;

    /// How the door behaves now.
    fn behaviour(&self) -> Behaviour;

    /// Whom log and script know the caller as: its token, or its user.
    fn name_of_caller(headers: &HeaderMap) -> String;

    /// The page of a list that a query asks for. Clouds whose pages have no numbers know one page.
    fn page_of(_query: &str) -> u64 {
        1
    }

    /// The header that names a call in its answer, and the name of the call of this number.
    fn request_id(number: u64) -> (HeaderName, String);

    /// Decides who calls, what they may do, and whether they call too often.
    fn admit(&self, call: &Arrival<Self::Operation>) -> Admitted<Self::Caller>;

    /// Does what was asked for, or what the fault makes of that.
    fn perform(
        &self,
        call: &Arrival<Self::Operation>,
        caller: &Self::Caller,
        fault: Option<&Self::Fault>,
    ) -> impl Future<Output = Answer> + Send;

    /// Makes a list wrong. An answer that is no list stays as it is.
    fn spoil_list(&self, answer: &mut Value, how: ListFault);

    /// The answer to a request that is none of the API's own, in the API's form.
    fn complain(&self, complaint: Complaint) -> Answer;

    /// The script of faults.
    fn faults(&self) -> Faults<'_, Self> {
        Faults::of(self)
    }
}

/// A cloud that can be steered from another process. Written by [`handles!`](crate::handles).
pub trait Steerable: Emulated {
    /// How it behaves, in words.
    type Settings: Serialize + DeserializeOwned;

    /// How it behaves now.
    fn settings(&self) -> Self::Settings;

    /// Makes it behave so from now on.
    fn set_settings(&self, settings: Self::Settings);

    /// Adds a project, which no token sees yet.
    fn add_project(&self, name: &str);

    /// Lets a token into a project, and into no other.
    fn grant(&self, token: &str, project: &str, permission: Permission);

    /// Makes a token worthless.
    fn revoke(&self, token: &str);
}
