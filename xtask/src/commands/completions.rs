//! `completions`: a script for a shell, which knows the commands, their options, and the names of the catalog.

use super::App;
use crate::catalog::Platform;
use crate::cli::{self, Completions as Args, Shell};
use anyhow::Result;
use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::{Shell as Dialect, generate};
use std::collections::BTreeMap;

/// The name of the program in a shell that does not go through cargo.
const NAME: &str = "xtask";

/// Options whose values are known, by their ids.
type Values = BTreeMap<&'static str, Vec<String>>;

/// Prints the script for `xtask …`, and behind it what makes it complete `cargo xtask …` too.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let (dialect, cargo) = match args.shell {
        Shell::Bash => (Dialect::Bash, include_str!("../../data/completions/bash")),
        Shell::Zsh => (Dialect::Zsh, include_str!("../../data/completions/zsh")),
        Shell::Fish => (Dialect::Fish, include_str!("../../data/completions/fish")),
    };
    let mut command = with_values(cli::command().name(NAME).bin_name(NAME), &values(app));
    let mut script = Vec::new();
    generate(dialect, &mut command, NAME, &mut script);
    let script = String::from_utf8(script)? + cargo;
    app.out.result(script.trim_end(), &script)
}

/// The names of the catalog; none where it is refused, which is no reason to complete nothing.
fn values(app: &App) -> Values {
    let mut values = Values::from([("platform", Platform::ALL.iter().map(ToString::to_string).collect())]);
    if let Ok(project) = app.project() {
        let catalog = project.catalog;
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        values.insert("variant", owned(catalog.variants_in_order()));
        values.insert("release", owned(catalog.releases_newest_first()));
        values.insert("root", catalog.roots.keys().cloned().collect());
    }
    values
}

fn with_values(command: Command, values: &Values) -> Command {
    let known = command.mut_args(|arg| match values.get(arg.get_id().as_str()) {
        Some(names) => arg.value_parser(PossibleValuesParser::new(names)),
        None => arg,
    });
    known.mut_subcommands(|it| with_values(it, values))
}
