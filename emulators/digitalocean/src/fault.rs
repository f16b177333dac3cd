//! What goes wrong by script.

cloudkeel_emulation::faults! {
    /// Something that goes wrong with a call.
    pub enum Fault {
        /// The cloud refuses, and nothing happens.
        Refused {
            /// The HTTP status. The code and the words are those that go with it.
            status: u16,
        },
        /// A proxy in front of the cloud answers with this status and a page of HTML; nothing happens.
        Bare {
            /// The HTTP status.
            status: u16,
        },
    }
}

impl Fault {
    /// A refusal with this status.
    pub const fn status(status: u16) -> Self {
        Self::Refused { status }
    }
}
