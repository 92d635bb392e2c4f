//! Our own lint: what no rendered Dockerfile and no bake file may hold. Pure; all findings come at once.

mod arguments;
mod bake;
mod bases;
mod commands;
mod dockerfile;
mod files;
mod secrets;
#[cfg(test)]
mod tests;
mod words;

use crate::problem::{Id, Problem};
use crate::render::{self, Files};
use dockerfile::Dockerfile;
use std::collections::BTreeMap;
use std::path::Path;

/// A Dockerfile with what its bake target gives it.
struct Subject {
    dockerfile: Dockerfile,
    /// Addresses by the names of the target's contexts.
    contexts: BTreeMap<String, String>,
}

/// Something that a rule found; the file is known to the caller.
#[derive(Debug)]
struct Finding {
    id: Id,
    line: usize,
    what: String,
    cure: String,
}

/// Every rule, each over a whole file.
const RULES: &[fn(&Subject) -> Vec<Finding>] =
    &[arguments::findings, bases::findings, commands::findings, files::findings, secrets::findings];

/// What is wrong with rendered files: every Dockerfile, and the bake file with what it gives them.
///
/// Ids: `E_BASE_UNPINNED`, `E_SECRET_IN_ARG`, and `E_LINT` for everything else.
pub fn lint(files: &Files) -> Vec<Problem> {
    let bake_path = files.keys().find(|path| path.ends_with(render::BAKE_FILE)).cloned().unwrap_or_default();
    let bake_text = files.get(&bake_path).map_or("", String::as_str);
    let targets = bake::targets(bake_text);
    let mut problems = Vec::new();
    let mut subjects: BTreeMap<&Path, Subject> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with("Dockerfile")) {
        match Dockerfile::parse(text) {
            Ok(dockerfile) => {
                let own = targets.iter().filter(|target| target.dockerfile == *path);
                let contexts = own.flat_map(|target| target.contexts.clone()).collect();
                subjects.insert(path, Subject { dockerfile, contexts });
            }
            Err((line, what)) => {
                let cure = "correct the template that it is rendered from".to_owned();
                problems.extend(told(path, vec![Finding { id: Id::Lint, line, what, cure }]));
            }
        }
    }
    for (path, subject) in &subjects {
        problems.extend(told(path, RULES.iter().flat_map(|rule| rule(subject)).collect()));
    }
    let of = |target: &bake::Target| subjects.get(target.dockerfile.as_path()).map(|s| &s.dockerfile);
    problems.extend(told(&bake_path, targets.iter().flat_map(|t| t.findings(bake_text, of(t))).collect()));
    problems
}

/// The findings of a file in the order of its lines.
fn told(path: &Path, mut findings: Vec<Finding>) -> Vec<Problem> {
    findings.sort_by_key(|finding| finding.line);
    let place = |line: usize| format!("{}:{line}", path.display());
    findings.into_iter().map(|f| Problem::new(f.id, place(f.line), f.what, f.cure)).collect()
}
