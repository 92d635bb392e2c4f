//! Completion scripts in the shells that they are for.

use crate::debian;
use crate::support::{Copy, Outcome, project, xtask_in};
use std::path::Path;
use std::process::Command;

/// The script for a shell, in a file.
fn script(folder: &Path, shell: &str) -> String {
    let outcome = xtask_in(&project(), &["completions", shell], &[]);
    let path = folder.join(shell);
    std::fs::write(&path, &outcome.expect(0, &[]).stdout).unwrap();
    assert_eq!(outcome.stderr, "");
    path.display().to_string()
}

/// What bash offers where the last word is being typed; `before` runs ahead of the script.
fn offered(before: &str, words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let ask = format!(
        r#"set -u; {before}
        source "$0"; source "$0"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        [[ $(complete -p "$1") =~ -F\ ([^ ]+) ]]
        "${{BASH_REMATCH[1]}}" "$1" "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
        printf '%s\n' "${{COMPREPLY[@]}}""#
    );
    let script = script(folder.path(), "bash");
    let bash = Command::new("bash")
        .args(["--norc", "-c", &ask, &script])
        .args(words)
        .current_dir(folder.path())
        .output();
    Outcome::of(bash.unwrap()).expect(0, &[]).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_the_names_of_the_catalog() {
    let lines: [(&[&str], &[&str]); 5] = [
        (&["xtask", "bui"], &["build"]),
        (&["cargo", "xtask", "engine", "p"], &["prune"]),
        (&["cargo", "xtask", "build", "--keep"], &["--keep-going"]),
        (&["cargo", "xtask", "build", "--variant", ""], &["runtime", "devel", "debug", "mlflow"]),
        (&["cargo", "xt"], &["xtask"]),
    ];
    for (words, expected) in lines {
        assert_eq!(offered("", words), expected, "{words:?}");
    }
}

#[test]
fn bash_asks_what_completed_cargo_before_for_all_else() {
    let before = "before() { COMPREPLY=(theirs); }; complete -F before cargo;";
    assert_eq!(offered(before, &["cargo", "bu"]), ["theirs"]);
    assert_eq!(offered(before, &["cargo", "xtask", "bui"]), ["build"]);
}

#[test]
fn a_refused_catalog_still_gets_a_script_without_names() {
    let copy = Copy::new();
    copy.edit("releases:\n", "releasees:\n");
    let script = copy.xtask(&["completions", "bash"]);
    assert!(script.expect(0, &["--keep-going"]).stdout.contains("--variant"));
    assert!(!script.stdout.contains("mlflow"));
    copy.xtask(&["completions", "tcsh"]).expect(2, &["[possible values: bash, zsh, fish]"]);
}

/// Types at an interactive zsh on a terminal of its own, and shows what it completed.
const TYPE: &str = r#"module_path=($MODULES); zmodload zsh/zpty
zpty shell "TERM=dumb $ZSH -f -i"
zpty -w shell "PS1=; module_path=($MODULES); fpath=($FUNCTIONS/{Completion,Completion/*,Misc}(/)); \
    autoload -U compinit; compinit -u -D; source $1; print rea''dy"
zpty -r -m shell seen '*ready*'
zpty -w -n shell $'cargo xtask build --variant ml\t'
zpty -r -m shell seen '*mlflow*'
print -r -- "$seen""#;

#[test]
#[ignore = "fetches zsh"]
fn zsh_completes_behind_cargo() {
    let (program, functions) = (debian::unpacked("zsh"), debian::unpacked("zsh-common"));
    let modules = format!("{}-linux-gnu/zsh", std::env::consts::ARCH);
    let modules = program.join("usr/lib").join(modules).read_dir().unwrap().next().unwrap().unwrap().path();
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path(), "zsh");
    let zsh = |args: &[&str]| {
        let program = program.join("bin/zsh");
        let mut zsh = Command::new("timeout");
        zsh.arg("60").arg(&program).args(args).env("ZSH", &program).env("MODULES", &modules);
        Outcome::of(zsh.env("FUNCTIONS", functions.join("usr/share/zsh/functions")).output().unwrap())
    };
    zsh(&["-f", "-n", &script]).expect(0, &[]);
    zsh(&["-f", "-c", TYPE, "type", &script]).expect(0, &["cargo xtask build --variant mlflow"]);
}

#[test]
#[ignore = "fetches fish"]
fn fish_completes_behind_cargo() {
    let [program, functions, library] = ["fish", "fish-common", "libpcre2-32-0"].map(debian::unpacked);
    let library = library.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let folder = tempfile::tempdir().unwrap();
    let script = script(folder.path(), "fish");
    let fish = |args: &[&str]| {
        let mut fish = Command::new(program.join("usr/bin/fish"));
        let fish = fish.args(args).env("LD_LIBRARY_PATH", &library).env("HOME", folder.path());
        Outcome::of(fish.env("FUNCTIONS", functions.join("usr/share/fish/functions")).output().unwrap())
    };
    fish(&["--no-execute", &script]).expect(0, &[]);
    for (line, expected) in [("cargo xtask bui", "build\t"), ("cargo xtask build --variant ml", "mlflow")] {
        let ask = format!("set -p fish_function_path $FUNCTIONS; source {script}; complete -C '{line}'");
        let outcome = fish(&["--no-config", "-c", &ask]);
        assert!(outcome.expect(0, &[]).stdout.starts_with(expected), "{line}: {outcome:#?}");
    }
}
