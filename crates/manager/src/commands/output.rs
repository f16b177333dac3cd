//! Tables and colours for people, JSON for machines.

use std::io::{self, IsTerminal};

use clap::ValueEnum;

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    #[value(alias = "table")]
    Text,
    /// For machines.
    Json,
}

/// Whether the output shows colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    colours: bool,
}

impl Screen {
    /// Colours on a terminal, unless `NO_COLOR` is set.
    pub fn detect() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colours: io::stdout().is_terminal() && !refused,
        }
    }

    /// Never any colours.
    pub const fn plain() -> Self {
        Self { colours: false }
    }

    /// A heading.
    pub fn heading(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Secondary text.
    pub fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Something that is made, or as it should be.
    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Something that changes, or needs attention.
    pub fn warning(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Something that is taken away, or broken.
    pub fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Columns as wide as their widest cell, the last one free. The first row is the heading.
    pub fn table(self, rows: &[Vec<String>]) -> String {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            let line = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect::<Vec<_>>()
                .join("  ");
            let line = line.trim_end();
            let line = if index == 0 {
                self.heading(line)
            } else {
                line.to_owned()
            };
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_tail() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect::<Vec<_>>();
        let table =
            Screen::plain().table(&[row(&["A", "B"]), row(&["long", "x"]), row(&["s", ""])]);
        assert_eq!(table, "A     B\nlong  x\ns\n");
    }

    #[test]
    fn colours_are_only_for_those_who_see_them() {
        assert_eq!(Screen::plain().heading("x"), "x");
        let coloured = Screen { colours: true };
        assert_eq!(coloured.faint("x"), "\u{1b}[2mx\u{1b}[0m");
    }
}
