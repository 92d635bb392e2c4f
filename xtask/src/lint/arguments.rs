//! An argument is declared in the stage that uses it, and used in the stage that declares it.

use super::dockerfile::{Dockerfile, Instruction};
use super::words::{commands, pairs, references};
use super::{Finding, Subject};
use crate::problem::Id;
use std::collections::{BTreeMap, BTreeSet};

/// BuildKit's own: known to every `RUN` without being declared, and not kept.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY"];

/// BuildKit's own: known to a stage that declares them.
const PLATFORM: &[&str] = &[
    "TARGETPLATFORM",
    "TARGETOS",
    "TARGETARCH",
    "TARGETVARIANT",
    "TARGETSTAGE",
    "BUILDPLATFORM",
    "BUILDOS",
    "BUILDARCH",
    "BUILDVARIANT",
];

/// Whether BuildKit takes an argument for itself, or gives it to every step, whatever a Dockerfile declares.
pub fn is_predefined(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    PROXIES.contains(&upper.as_str()) || name == "SOURCE_DATE_EPOCH" || name.starts_with("BUILDKIT_")
}

/// Whether any `ARG` of a file declares a name.
pub fn declares(file: &Dockerfile, name: &str) -> bool {
    file.instructions().any(|instruction| declared(file, instruction).any(|(own, _)| own == name))
}

/// Names that an `ARG` declares, with their lines.
fn declared(file: &Dockerfile, instruction: &Instruction) -> impl Iterator<Item = (String, usize)> {
    let is_arg = instruction.word == "ARG";
    let pairs = if is_arg { pairs(instruction, file.escape) } else { Vec::new() };
    pairs.into_iter().map(|(name, _)| (name.text, name.line))
}

/// The names that an instruction refers to, each with the first line on which it does.
fn referred(instruction: &Instruction) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    for line in instruction.lines.iter().filter(|line| !line.literal) {
        for name in references(&line.text) {
            found.entry(name).or_insert(line.number);
        }
    }
    found
}

/// Arguments that are declared and not used, and those that are used where they are empty.
pub fn findings(subject: &Subject) -> Vec<Finding> {
    let file = &subject.dockerfile;
    let mut found = unused_globals(file);
    for stage in 0..file.stages.len() {
        found.extend(unused(file, stage));
        found.extend(empty(file, stage));
    }
    found
}

/// What stands before the first `FROM` is for `FROM` lines, and a default for stages that declare it again.
fn unused_globals(file: &Dockerfile) -> Vec<Finding> {
    let froms = file.stages.iter().flat_map(|stage| stage.instructions.first());
    let mut used: BTreeSet<String> =
        file.globals.iter().chain(froms).flat_map(|i| referred(i).into_keys().map(str::to_owned)).collect();
    let staged = file.stages.iter().flat_map(|stage| &stage.instructions);
    used.extend(staged.flat_map(|instruction| declared(file, instruction)).map(|(name, _)| name));
    let globals = file.globals.iter().flat_map(|instruction| declared(file, instruction));
    let unused = globals.filter(|(name, _)| !used.contains(name) && !is_predefined(name));
    unused.map(|(name, line)| never_used(&name, line)).collect()
}

fn unused(file: &Dockerfile, stage: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, instruction) in file.stages[stage].instructions.iter().enumerate() {
        let later = &file.stages[stage].instructions[index + 1..];
        for (name, line) in declared(file, instruction).filter(|(name, _)| !is_predefined(name)) {
            let refers = |i: &Instruction| referred(i).contains_key(name.as_str());
            // A stage inherits the arguments of the stage that it stands on.
            let heirs = file.stages.iter().enumerate().filter(|(heir, _)| stands_on(file, *heir, stage));
            let mut inherited = heirs.flat_map(|(_, heir)| &heir.instructions);
            if !later.iter().any(refers) && !inherited.any(refers) {
                found.push(never_used(&name, line));
            }
        }
    }
    found
}

fn stands_on(file: &Dockerfile, stage: usize, on: usize) -> bool {
    file.stages[stage].parent.is_some_and(|parent| parent == on || stands_on(file, parent, on))
}

fn never_used(name: &str, line: usize) -> Finding {
    let what = format!("`ARG {name}` is used nowhere in the stage that declares it");
    let cure = format!("use `${name}` there, or remove the line");
    Finding { id: Id::Lint, line, what, cure }
}

/// References to an `ARG` of another stage, of the head of the file, or of a later line.
fn empty(file: &Dockerfile, stage: usize) -> Vec<Finding> {
    let mut seen = file.stages[stage].parent.map(|parent| visible(file, parent)).unwrap_or_default();
    let mut found = Vec::new();
    for instruction in file.stages[stage].instructions.iter().skip(1) {
        for (name, line) in referred(instruction) {
            if seen.contains(name) || is_predefined(name) || assigns(file, instruction, name) {
                continue;
            }
            let what = match file.instructions().find_map(|i| declared(file, i).find(|(own, _)| own == name))
            {
                Some((_, there)) => format!(
                    "`${name}` is empty here: `ARG {name}` on line {there} is not of this stage, or comes too late"
                ),
                None if PLATFORM.contains(&name) => {
                    format!("`${name}` is empty here: BuildKit gives it to a stage that declares it")
                }
                // A variable of the root or of the shell.
                None => continue,
            };
            let cure = format!("write `ARG {name}` in this stage, above line {}", instruction.line);
            found.push(Finding { id: Id::Lint, line, what, cure });
        }
        seen.extend(sets(file, instruction));
    }
    found
}

/// Every variable that a stage knows at its end.
fn visible(file: &Dockerfile, stage: usize) -> BTreeSet<String> {
    let mut seen = file.stages[stage].parent.map(|parent| visible(file, parent)).unwrap_or_default();
    seen.extend(file.stages[stage].instructions.iter().flat_map(|instruction| sets(file, instruction)));
    seen
}

fn sets(file: &Dockerfile, instruction: &Instruction) -> Vec<String> {
    match instruction.word {
        "ARG" | "ENV" => pairs(instruction, file.escape).into_iter().map(|(key, _)| key.text).collect(),
        _ => Vec::new(),
    }
}

/// Whether the shell gives the variable a value itself: `NAME=…`, `for NAME in`, `read NAME`.
fn assigns(file: &Dockerfile, instruction: &Instruction, name: &str) -> bool {
    instruction.word == "RUN"
        && commands(instruction, file.escape).iter().flat_map(|command| &command.words).any(|word| {
            word.text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
}
