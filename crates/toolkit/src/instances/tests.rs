mod lists;
mod many;
mod proof;

use std::collections::VecDeque;

use cloudkeel_api::{Evidence, ScopeFingerprint, TokioClock};
use jiff::SignedDuration;

use super::*;

/// What the cloud answers to a look-up of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Live,
    Tombstone,
    NotFound,
    Refused(ErrorKind),
    OtherScope,
}
use Answer::{Live, NotFound, OtherScope, Refused, Tombstone};

#[derive(Debug, Clone, PartialEq, Eq)]
struct Server {
    id: u64,
    name: String,
    is_tombstone: bool,
}

impl HasId for Server {
    type Id = u64;

    fn id(&self) -> u64 {
        self.id
    }
}

/// A cloud that answers by script, and writes down what it is asked.
struct Script {
    answers: BTreeMap<u64, Mutex<VecDeque<Answer>>>,
    listed: Mutex<Vec<u64>>,
    lists_scope: &'static str,
    batch: Option<usize>,
    batch_error: Option<ErrorKind>,
    is_summary: bool,
    /// What an instance that has another name than its Node is.
    renamed: Option<ErrorKind>,
    list_from: usize,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    /// Each instance gives its answers in turn, and the last one for ever.
    fn new(answers: &[(u64, &[Answer])]) -> Self {
        let answers = answers.iter().map(|(id, answers)| {
            let answers = answers.iter().copied().collect();
            (*id, Mutex::new(answers))
        });
        Self {
            answers: answers.collect(),
            listed: Mutex::default(),
            lists_scope: "home",
            batch: None,
            batch_error: None,
            is_summary: false,
            renamed: None,
            list_from: 10,
            asked: Arc::default(),
        }
    }

    fn listing(self, ids: &[u64]) -> Self {
        *self.listed.lock().unwrap() = ids.to_vec();
        self
    }

    fn in_batches_of(mut self, batch: usize) -> Self {
        self.batch = Some(batch);
        self
    }

    fn ask(&self, question: String) {
        self.asked.lock().unwrap().push(question);
    }

    fn answer(&self, id: u64) -> Answer {
        let Some(answers) = self.answers.get(&id) else {
            return NotFound;
        };
        let mut answers = answers.lock().unwrap();
        match answers.len() {
            0 => NotFound,
            1 => answers[0],
            _ => answers.pop_front().unwrap(),
        }
    }
}

fn server(id: u64, is_tombstone: bool) -> Server {
    Server {
        id,
        name: format!("node-{}", id % 100),
        is_tombstone,
    }
}

fn error(kind: ErrorKind) -> CloudError {
    CloudError::new("GET /servers/{id}", kind, "scripted").with_request_id("r-1")
}

#[async_trait]
impl InstanceSource for Script {
    type Id = u64;
    type Item = Server;

    fn scope(&self) -> ScopeFingerprint {
        ScopeFingerprint::new("home")
    }

    fn parse_id(&self, id: &ProviderId) -> Result<u64, String> {
        let number = id.as_str().strip_prefix("x://");
        let number = number.and_then(|number| number.parse().ok());
        number.ok_or_else(|| "expected x://<number>".to_owned())
    }

    fn instance(&self, item: &Server) -> Instance {
        Instance {
            is_summary: self.is_summary,
            ..Instance::new(ProviderId::new("x", &item.id.to_string()), &item.name)
        }
    }

    fn terminated(&self, item: &Server) -> Option<String> {
        item.is_tombstone.then(|| "terminated".to_owned())
    }

    async fn list(&self) -> Result<Listed<Server>, CloudError> {
        self.ask("list".to_owned());
        let listed = self.listed.lock().unwrap().clone();
        let shown = listed
            .into_iter()
            .map(|id| server(id, self.answer(id) == Tombstone));
        Ok(Listed {
            scope: ScopeFingerprint::new(self.lists_scope),
            items: shown.collect(),
        })
    }

    async fn get(&self, id: &u64) -> Result<Server, LookupError> {
        self.ask(format!("get {id}"));
        match self.answer(*id) {
            Live => Ok(server(*id, false)),
            Tombstone => Ok(server(*id, true)),
            NotFound => Err(error(ErrorKind::NotFound).into()),
            Refused(kind) => Err(error(kind).into()),
            OtherScope => Err(LookupError::OtherScope(ScopeFingerprint::new("away"))),
        }
    }

    async fn get_for(&self, node: &NodeFacts, id: &u64) -> Result<Server, LookupError> {
        let server = self.get(id).await?;
        match self.renamed {
            Some(kind) if server.name != node.name => Err(error(kind).into()),
            _ => Ok(server),
        }
    }

    fn list_from(&self) -> usize {
        self.list_from
    }

    fn batch(&self) -> Option<usize> {
        self.batch
    }

    async fn get_many(&self, ids: &[u64]) -> Result<Vec<Server>, LookupError> {
        assert!(ids.len() <= self.batch.unwrap(), "{ids:?}");
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        self.ask(format!("get {sorted:?}"));
        if let Some(kind) = self.batch_error {
            return Err(error(kind).into());
        }
        let shown = sorted.into_iter().filter_map(|id| match self.answer(id) {
            Live => Some(server(id, false)),
            Tombstone => Some(server(id, true)),
            NotFound | Refused(_) | OtherScope => None,
        });
        Ok(shown.collect())
    }

    async fn describe(
        &self,
        instances: Vec<Instance>,
        _: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        self.ask("describe".to_owned());
        let describe = |instance| {
            Ok(Instance {
                is_summary: false,
                ..instance
            })
        };
        instances.into_iter().map(describe).collect()
    }
}

fn proven(script: Script) -> ProvenInstances<Script> {
    ProvenInstances::new(
        script,
        Arc::new(TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH)),
    )
}

fn node(id: u64) -> NodeFacts {
    NodeFacts {
        name: format!("node-{id}"),
        provider_id: Some(ProviderId::new("x", &id.to_string())),
        ..NodeFacts::default()
    }
}

fn known(instances: &ProvenInstances<Script>, id: &str, scope: &str) -> KnownInstance {
    let instance = Instance::new(id.parse().unwrap(), "known");
    KnownInstance::of(
        &instance,
        &ScopeFingerprint::new(scope),
        instances.clock.now(),
    )
}

/// In one word.
fn word(existence: &Existence) -> &'static str {
    match existence {
        Existence::Present(_) => "present",
        Existence::Gone(_) => "gone",
        Existence::Unknown(Doubt::NoAnswer(_)) => "no answer",
        Existence::Unknown(Doubt::NoMatch { .. }) => "no match",
        Existence::Unknown(Doubt::Ambiguous { .. }) => "ambiguous",
        Existence::Unknown(Doubt::NothingElseSeen { .. }) => "nothing else seen",
        Existence::Unknown(Doubt::ScopeChanged { .. }) => "scope changed",
        Existence::Unknown(Doubt::SeenMomentsAgo { .. }) => "seen moments ago",
        Existence::Unknown(Doubt::NotOurs { .. }) => "not ours",
        Existence::Unknown(_) => "another doubt",
    }
}

fn asked(instances: &ProvenInstances<Script>) -> Vec<String> {
    std::mem::take(&mut *instances.source.asked.lock().unwrap())
}

const ANSWERS: [Answer; 9] = [
    Live,
    Tombstone,
    NotFound,
    OtherScope,
    Refused(ErrorKind::Unauthenticated),
    Refused(ErrorKind::Denied),
    Refused(ErrorKind::Throttled { retry_after: None }),
    Refused(ErrorKind::Unavailable),
    Refused(ErrorKind::Malformed),
];
