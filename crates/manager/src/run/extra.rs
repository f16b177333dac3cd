//! Commands that the binary brings, because the manager must not know what they need.

use std::process::ExitCode;

/// A command that the binary brings.
#[derive(Debug, Clone, Copy)]
pub struct ExtraCommand {
    /// The first argument that asks for it.
    pub name: &'static str,
    /// Runs it with all arguments, the first of which is the program's own name.
    pub run: fn(&[String]) -> ExitCode,
}

/// The extra command that the arguments ask for, if any.
pub(super) fn asked_for(
    arguments: &[String],
    extra: &[ExtraCommand],
) -> Option<fn(&[String]) -> ExitCode> {
    let first = arguments.get(1)?;
    let command = extra.iter().find(|command| command.name == first)?;
    Some(command.run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_argument_asks_for_a_command() {
        let extra = [ExtraCommand {
            name: "emulate",
            run: |_| ExitCode::SUCCESS,
        }];
        for (line, asked) in [
            ("cloudkeel", false),
            ("cloudkeel emulate hetzner", true),
            ("cloudkeel --cloud-provider=local emulate", false),
            ("emulate", false),
        ] {
            let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(asked_for(&arguments, &extra).is_some(), asked, "{line}");
        }
    }
}
