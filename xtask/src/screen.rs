//! Where people read progress, and whether it is in colour.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};

use crate::cli::Output;
use crate::machine::Machine;

/// The stream for human eyes: stdout, or stderr when stdout belongs to JSON.
pub(crate) struct Screen {
    stream: RefCell<Box<dyn Write>>,
    palette: Palette,
}

impl Screen {
    pub(crate) fn for_output(output: Output, machine: &Machine) -> Self {
        let (stream, terminal): (Box<dyn Write>, bool) = match output {
            Output::Text => (Box::new(io::stdout()), io::stdout().is_terminal()),
            Output::Json => (Box::new(io::stderr()), io::stderr().is_terminal()),
        };
        let wanted = terminal && machine.variable("NO_COLOR").is_none();
        Self::new(
            stream,
            if wanted {
                Palette::Colours
            } else {
                Palette::Plain
            },
        )
    }

    pub(crate) fn new(stream: Box<dyn Write>, palette: Palette) -> Self {
        Self {
            stream: RefCell::new(stream),
            palette,
        }
    }

    pub(crate) fn palette(&self) -> Palette {
        self.palette
    }

    pub(crate) fn line(&self, line: &str) {
        self.text(&format!("{line}\n"));
    }

    pub(crate) fn heading(&self, text: &str) {
        self.line("");
        self.line(&self.palette.paint(Colour::Bold, text));
    }

    /// Prints text as it is. A reader that went away (`| head`) must not stop the checks.
    pub(crate) fn text(&self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let mut stream = self.stream.borrow_mut();
        let _ = stream.write_all(bytes).and_then(|()| stream.flush());
    }
}

/// Prints a value for programs, on stdout.
pub(crate) fn print_json(value: &serde_json::Value) {
    let _ = writeln!(io::stdout(), "{value:#}");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Palette {
    Plain,
    Colours,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Colour {
    Bold,
    Green,
    Red,
    Yellow,
}

impl Palette {
    pub(crate) fn paint(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Bold => "1",
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
        };
        match self {
            Self::Plain => text.to_owned(),
            Self::Colours => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_palette_with_colours_adds_escape_codes() {
        assert_eq!(Palette::Plain.paint(Colour::Red, "failed"), "failed");
        assert_eq!(
            Palette::Colours.paint(Colour::Red, "failed"),
            "\x1b[31mfailed\x1b[0m"
        );
    }
}
