//! Our own lint of what is rendered: it stands before everything that is written or built.

use crate::support::Copy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A copy of the project whose template of variants does what it must not.
fn spoiled() -> Copy {
    let copy = Copy::new();
    let bad =
        "ENV HF_TOKEN=x\nRUN true \\\n && pip install --trusted-host h x\nCOPY --from=nginx:1 / /\nENV HOME=";
    copy.edit_file("templates/variant.Dockerfile.tera", "ENV HOME=", bad);
    copy
}

#[test]
fn what_does_not_pass_is_told_at_once_and_not_written() {
    let copy = spoiled();
    let before = images(&copy);
    let variant = before.iter().find(|(path, _)| path.ends_with("2.15/runtime/Dockerfile")).unwrap().1;
    let line = 1 + variant.lines().position(|line| line.starts_with("ENV HOME=")).unwrap();
    let at = |offset: usize, rest: &str| format!("images/2.15/runtime/Dockerfile:{}: {rest}", line + offset);
    let said = [
        format!("error[E_SECRET_IN_ARG]: {}", at(0, "`HF_TOKEN` in ENV")),
        format!("error[E_LINT]: {}", at(2, "`--trusted-host` switches a verification off")),
        format!("error[E_LINT]: {}", at(2, "`pip install` takes what the index serves")),
        format!("error[E_BASE_UNPINNED]: {}", at(3, "`nginx:1` has no digest")),
        "images/2.6/runtime/Dockerfile:".to_owned(),
        "  help: ".to_owned(),
    ];
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let commands: [&[&str]; 6] = [
        &["render"],
        &["render", "--check"],
        &["render", "--dry-run"],
        &["check"],
        &["plan", "--variant", "runtime"],
        &["build", "--variant", "runtime"],
    ];
    for command in commands {
        copy.xtask(command).expect(2, &said);
    }
    assert!(images(&copy) == before, "something was written");
}

/// Inside a stage, an argument of the head of the file is an empty string, and docker says nothing.
#[test]
fn an_argument_that_only_the_head_of_the_file_declares_is_refused() {
    let copy = Copy::new();
    copy.edit_file(
        "templates/base.Dockerfile.tera",
        "FROM root AS builder\n",
        "ARG ROOT\nFROM root AS builder\nRUN echo $ROOT\n",
    );
    let said = ["images/2.15/base/Dockerfile:", "`$ROOT` is empty here", "write `ARG ROOT` in this stage"];
    copy.xtask(&["render"]).expect(2, &said);
}

/// Every file below `images/`.
fn images(copy: &Copy) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut left = vec![copy.path("images")];
    while let Some(folder) = left.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => left.push(path),
                false => drop(files.insert(path.clone(), std::fs::read_to_string(Path::new(&path)).unwrap())),
            }
        }
    }
    files
}
