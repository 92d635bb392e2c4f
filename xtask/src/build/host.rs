//! What the checkout says of itself.

use crate::runner::Step;
use std::path::Path;

/// The commit of a checkout, `-dirty` behind it when files differ from it; `unknown` outside of git.
pub fn revision(folder: &Path) -> String {
    let git = |args: &[&str]| {
        let step = Step::new("revision", ["git", "-C", &folder.join(".").display().to_string()]);
        step.args(args.iter().copied()).read().ok()
    };
    let Some(commit) = git(&["rev-parse", "--verify", "HEAD"]) else {
        return "unknown".to_owned();
    };
    match git(&["status", "--porcelain"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}-dirty"),
    }
}
