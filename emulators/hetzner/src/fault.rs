//! What goes wrong by script.

cloudkeel_emulation::faults! {
    /// Something that goes wrong with a call.
    pub enum Fault {
        /// The cloud refuses, and nothing happens.
        Refused {
            /// The code in the body.
            code: String,
            /// The HTTP status; by default the one that goes with the code.
            #[serde(default)]
            status: Option<u16>,
        },
        /// A proxy in front of the cloud answers with this status and a page of HTML; nothing happens.
        Bare {
            /// The HTTP status.
            status: u16,
        },
        /// It is accepted, and then its action ends in this error without any effect.
        ActionFails {
            /// The code of the action's error.
            code: String,
        },
    }
}

impl Fault {
    /// A refusal with this code and the status that goes with it.
    pub fn code(code: impl Into<String>) -> Self {
        Self::Refused {
            code: code.into(),
            status: None,
        }
    }

    /// A refusal with this status and the code that usually goes with it.
    pub fn status(status: u16) -> Self {
        Self::Refused {
            code: crate::refusal::code_of(status).to_owned(),
            status: Some(status),
        }
    }

    /// An action that ends in this error.
    pub fn action_fails(code: impl Into<String>) -> Self {
        Self::ActionFails { code: code.into() }
    }
}
