//! A command line that is not understood, in the form of all refusals.

use crate::problem::{Id, Problem};
use clap::Error;
use clap::error::ErrorKind;

/// Whether clap answers with the help of a command that was given nothing to do.
pub fn is_question(error: &Error) -> bool {
    error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// What clap found, taken apart: what is wrong, then a hint and the usage as the way out. `words` are those of the command
/// line, since clap does not always tell which command it was about.
pub fn problem(error: &Error, words: &[String]) -> Problem {
    let text = error.render().to_string();
    let mut parts = text.trim().split("\n\n").map(str::trim);
    let what = parts.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    let mut place = place(words);
    let (mut cure, mut form) = (Vec::new(), String::new());
    for part in parts {
        if let Some(usage) = part.strip_prefix("Usage: ") {
            let words = usage.split_whitespace().take_while(|word| !word.starts_with(['-', '<', '[']));
            place = words.collect::<Vec<_>>().join(" ");
            form = format!("usage: `{usage}`; ");
        } else if let Some(tip) = part.strip_prefix("tip: ") {
            cure.push(tip.to_owned());
        }
    }
    cure.push(format!("{form}all options: `{place} --help`"));
    Problem::new(Id::Usage, place, one_line(what), cure.join("; "))
}

/// The command and the command below it, as far as there are such.
fn place(words: &[String]) -> String {
    let (mut command, mut place) = (super::command(), "cargo xtask".to_owned());
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let Some(next) = command.find_subcommand(word).cloned() else { continue };
        place = format!("{place} {word}");
        command = next;
    }
    place
}

/// What clap lists on lines of their own, behind the sentence that it belongs to.
fn one_line(what: &str) -> String {
    let (sentence, list) = what.split_once('\n').unwrap_or((what, ""));
    let sentence = match sentence {
        "the following required arguments were not provided:" => "missing:",
        other => other,
    };
    let list: Vec<&str> = list.lines().map(str::trim).collect();
    format!("{sentence} {}", list.join(", ")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_the_command_that_it_is_about() {
        let cases = [
            (&["build", "--varian", "x"][..], "unexpected argument '--varian'", "'--variant'"),
            (&["build"], "missing: --variant <NAME>", "cargo xtask build --help"),
            (&["engine", "pruned"], "unrecognized subcommand 'pruned'", "'prune'"),
            (&["lock", "--check", "--update"], "cannot be used with '--update'", "cargo xtask lock --help"),
            (&["completions", "tcsh"], "[possible values: bash, zsh, fish]", "'zsh'"),
            (
                &["freshness", "--registry=r", "--max-age=2x"],
                "`2x` is no duration",
                "cargo xtask freshness --help",
            ),
            (&["buidl"], "unrecognized subcommand 'buidl'", "'build'"),
        ];
        for (args, what, cure) in cases {
            let words: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
            let args = std::iter::once("xtask").chain(args.iter().copied());
            let problem = problem(&crate::cli::command().try_get_matches_from(args).unwrap_err(), &words);
            assert!(problem.what.contains(what) && problem.cure.contains(cure), "{problem}");
            assert!(problem.place.starts_with("cargo xtask"), "{problem}");
            assert!(!problem.what.contains("Usage"), "{problem}");
        }
    }
}
