//! A command line that is not understood, in the form of all refusals.

use crate::problem::{Id, Problem};
use clap::Error;
use clap::error::ErrorKind;

/// Whether clap answers with the help of a command that was given nothing to do.
pub fn is_question(error: &Error) -> bool {
    error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// What clap found, taken apart: what is wrong, then a hint and the usage as the way out.
pub fn problem(error: &Error) -> Problem {
    let text = error.render().to_string();
    let mut parts = text.trim().split("\n\n").map(str::trim);
    let what = parts.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    let mut place = "cargo xtask".to_owned();
    let (mut cure, mut form) = (Vec::new(), String::new());
    for part in parts {
        if let Some(usage) = part.strip_prefix("Usage: ") {
            let words = usage.split_whitespace().take_while(|word| !word.starts_with(['-', '<', '[']));
            place = words.collect::<Vec<_>>().join(" ");
            form = format!("the form is `{usage}`; ");
        } else if let Some(tip) = part.strip_prefix("tip: ") {
            cure.push(tip.to_owned());
        }
    }
    cure.push(format!("{form}`{place} --help` tells what it takes"));
    Problem::new(Id::Usage, place, what.replace('\n', "\n  "), cure.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_the_command_that_it_is_about() {
        let cases = [
            (&["build", "--varian", "x"][..], "unexpected argument '--varian'", "'--variant'"),
            (&["build"], "required arguments were not provided", "cargo xtask build --help"),
            (&["engine", "pruned"], "unrecognized subcommand 'pruned'", "'prune'"),
            (&["lock", "--check", "--update"], "cannot be used with '--update'", "cargo xtask lock --help"),
            (&["completions", "tcsh"], "[possible values: bash, zsh, fish]", "'zsh'"),
            (&["buidl"], "unrecognized subcommand 'buidl'", "'build'"),
        ];
        for (args, what, cure) in cases {
            let args = std::iter::once("xtask").chain(args.iter().copied());
            let problem = problem(&crate::cli::command().try_get_matches_from(args).unwrap_err());
            assert!(problem.what.contains(what) && problem.cure.contains(cure), "{problem}");
            assert!(problem.place.starts_with("cargo xtask"), "{problem}");
            assert!(!problem.what.contains("Usage"), "{problem}");
        }
    }
}
