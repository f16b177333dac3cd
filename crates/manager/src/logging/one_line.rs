//! A log line stays one line, whatever annotations, clouds and clients have put into its fields.

use std::io::{self, Write};

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// Writes through another writer, with control characters escaped. The formatter writes one event at a time, with the line
/// break at its end.
pub(super) struct OneLine<M> {
    pub(super) writer: M,
    /// Whether the formatter colours what it writes.
    pub(super) has_colours: bool,
}

/// What [`OneLine`] makes.
pub(super) struct OneLineWriter<W> {
    writer: W,
    has_colours: bool,
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for OneLine<M> {
    type Writer = OneLineWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        OneLineWriter {
            writer: self.writer.make_writer(),
            has_colours: self.has_colours,
        }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        OneLineWriter {
            writer: self.writer.make_writer_for(metadata),
            has_colours: self.has_colours,
        }
    }
}

impl<W: Write> Write for OneLineWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = escaped(event, self.has_colours);
        self.writer.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn escaped(event: &[u8], has_colours: bool) -> String {
    let event = String::from_utf8_lossy(event);
    let line = event.strip_suffix('\n').unwrap_or(&event);
    let mut out = String::with_capacity(event.len());
    let mut rest = line.chars();
    while let Some(char) = rest.next() {
        if !char.is_control() || (has_colours && char == ESCAPE && is_colour(rest.as_str())) {
            out.push(char);
        } else {
            out.extend(char.escape_default());
        }
    }
    out.push_str(event.get(line.len()..).unwrap_or_default());
    out
}

const ESCAPE: char = '\u{1b}';

/// Whether what follows an escape character only sets a colour, such as `[31m`.
fn is_colour(rest: &str) -> bool {
    let numbers = rest.strip_prefix('[').and_then(|rest| rest.split_once('m'));
    numbers.is_some_and(|(numbers, _)| {
        let mut bytes = numbers.bytes();
        bytes.all(|byte| byte.is_ascii_digit() || byte == b';')
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_field_cannot_begin_a_line_of_its_own_or_move_the_cursor() {
        let written = Written::default();
        let writer = written.clone();
        let writer = OneLine {
            writer: move || writer.clone(),
            has_colours: false,
        };
        let layer = tracing_subscriber::fmt::layer().with_writer(writer);
        let subscriber = tracing_subscriber::registry().with(layer.with_ansi(false));
        tracing::subscriber::with_default(subscriber, || {
            let step = "rename to a\n2026-01-01 ERROR forged\r\u{1b}[2J\u{85}";
            tracing::info!(step, name = %step, "load balancer {step}");
            tracing::info!("the next");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(!text.contains(['\r', '\u{1b}', '\u{85}']), "{text:?}");
        assert!(
            lines[0].contains(r"rename to a\n2026-01-01 ERROR forged\r"),
            "{text}"
        );
    }

    #[test]
    fn colours_stay_on_a_terminal_and_nothing_else_does() {
        for (text, has_colours, expected) in [
            ("\u{1b}[31mred\u{1b}[0m\n", true, "\u{1b}[31mred\u{1b}[0m\n"),
            ("\u{1b}[31mred\n", false, "\\u{1b}[31mred\n"),
            ("\u{1b}[2Jm", true, "\\u{1b}[2Jm"),
            ("\u{1b}]0;title\u{7}", true, "\\u{1b}]0;title\\u{7}"),
            ("a\nb", true, "a\\nb"),
        ] {
            assert_eq!(escaped(text.as_bytes(), has_colours), expected, "{text:?}");
        }
    }
}
