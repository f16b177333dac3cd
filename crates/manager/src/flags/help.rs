//! `--help`, grouped as upstream groups it.

use std::fmt::Write as _;

use super::{Effect, FlagRow, FlagTable};

/// The text of `--help` for lines of at most `width` characters.
pub fn render_help(table: &FlagTable, commands: &[clap::Command], width: usize) -> String {
    let mut text = String::from(
        "cloudkeel is a Kubernetes cloud-controller-manager: it initializes Nodes, deletes those whose \
         instances are gone, and manages load balancers and routes.\n\n\
         Usage:\n  cloudkeel [flags]\n  cloudkeel <command> [flags]\n",
    );
    text.push_str("\nCommands (without one, cloudkeel runs as the cloud-controller-manager):\n");
    for command in commands {
        let about = command.get_about().map(ToString::to_string);
        let about = about.unwrap_or_default();
        let _ = writeln!(text, "  {:12} {about}", command.get_name());
    }
    text.push_str("\n`cloudkeel <command> --help` shows the flags of a command.\n");
    let mut group = None;
    for row in table.rows() {
        if group != Some(row.group) {
            group = Some(row.group);
            let _ = write!(text, "\n{}:\n\n", row.group.heading());
        }
        text.push_str(&render_row(row, width));
    }
    text
}

fn render_row(row: &FlagRow, width: usize) -> String {
    const INDENT: usize = 12;
    let short = match row.doc.name {
        "v" => "  -v, ",
        "help" => "  -h, ",
        _ => "      ",
    };
    let value = if row.is_switch() {
        String::new()
    } else {
        format!(" <{}>", row.doc.value_type)
    };
    let mut text = format!("{short}--{}{value}\n", row.doc.name);
    for line in wrap(&explanation(row), width.saturating_sub(INDENT).max(20)) {
        let _ = writeln!(text, "{:INDENT$}{line}", "");
    }
    text
}

fn explanation(row: &FlagRow) -> String {
    let mut text = row.doc.help.to_owned();
    match row.effect {
        Effect::Works => {}
        Effect::None(why) => {
            let _ = write!(text, " No effect: {why}.");
        }
        Effect::Deprecated(why) => {
            let _ = write!(text, " Deprecated: {why}.");
        }
    }
    if let Some(default) = row.doc.default.filter(|default| !default.is_empty()) {
        let _ = write!(text, " (default {default})");
    }
    text
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_shows_every_flag_under_its_group_with_default_and_effect() {
        let table = FlagTable::new(&[]);
        let commands = [clap::Command::new("docs").about("Print the pages")];
        let help = render_help(&table, &commands, 80);
        assert!(
            help.contains("\n  docs         Print the pages\n"),
            "{help}"
        );
        for row in table.rows() {
            assert!(
                help.contains(&format!("--{}", row.doc.name)),
                "{}",
                row.doc.name
            );
        }
        let generic = help.find("Generic flags:").unwrap();
        let serving = help.find("Secure serving flags:").unwrap();
        assert!(generic < serving);
        assert!(help.contains("(default kubernetes)"), "{help}");
        assert!(help.contains("No effect: "), "{help}");
    }

    #[test]
    fn lines_fit_the_terminal() {
        let help = render_help(&FlagTable::new(&[]), &[], 60);
        let flags = help.find("Generic flags").unwrap();
        for line in help[flags..].lines().filter(|line| !line.contains("--")) {
            assert!(line.chars().count() <= 60, "{line}");
        }
    }
}
