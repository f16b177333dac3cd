//! What goes wrong by script.

cloudkeel_emulation::faults! {
    /// Something that goes wrong with a call.
    pub enum Fault {
        /// The service refuses, and nothing happens.
        Refused {
            /// The HTTP status.
            status: u16,
            /// The message.
            message: String,
        },
        /// It is accepted, and then the load balancer ends in `ERROR`.
        EndsInError,
    }
}

impl Fault {
    /// A refusal with this status.
    pub fn status(status: u16) -> Self {
        Self::refused(status, "by script")
    }

    /// A refusal with this status and message.
    pub fn refused(status: u16, message: &str) -> Self {
        Self::Refused {
            status,
            message: message.to_owned(),
        }
    }
}
