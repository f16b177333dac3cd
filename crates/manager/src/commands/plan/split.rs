//! Tells the arguments of a command from the flags of the manager.

use clap::Command;

/// The arguments of this command, and all others, which are the manager's.
pub(crate) fn split(command: &Command, arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let Some(takes_value) = is_own(command, argument) else {
            others.push(argument.clone());
            continue;
        };
        own.push(argument.clone());
        if takes_value {
            own.extend(arguments.next().cloned());
        }
    }
    (own, others)
}

/// Whether an argument is the command's, and the next one its value.
fn is_own(command: &Command, argument: &str) -> Option<bool> {
    if matches!(argument, "-h" | "--help") {
        return Some(false);
    }
    let (name, has_value) = match argument.split_once('=') {
        Some((name, _)) => (name, true),
        None => (argument, false),
    };
    let mut known = command.get_arguments();
    let known = known.find(|known| match name.strip_prefix("--") {
        Some(long) => known.get_long() == Some(long),
        None => known
            .get_short()
            .is_some_and(|short| name == format!("-{short}")),
    });
    known.map(|known| known.get_action().takes_values() && !has_value)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::PlanArgs;
    use super::*;

    #[test]
    fn the_flags_of_the_manager_are_left_to_it_wherever_they_stand() {
        let arguments = [
            "--cloud-provider=hcloud",
            "--orphans",
            "--timeout",
            "5s",
            "--kubeconfig",
            "k",
            "-o",
            "json",
            "-v=2",
            "--output=text",
            "--help",
        ];
        let (own, others) = split(&PlanArgs::command(), &arguments.map(str::to_owned));
        assert_eq!(
            own,
            [
                "--orphans",
                "--timeout",
                "5s",
                "-o",
                "json",
                "--output=text",
                "--help"
            ]
        );
        assert_eq!(
            others,
            ["--cloud-provider=hcloud", "--kubeconfig", "k", "-v=2"]
        );
    }

    #[test]
    fn no_flag_of_the_manager_has_the_name_of_one_of_this_command() {
        let table = crate::flags::FlagTable::new(&[]);
        for argument in PlanArgs::command().get_arguments() {
            let long = argument.get_long().unwrap_or_default();
            assert!(table.get(long).is_none() || long == "help", "--{long}");
        }
    }
}
