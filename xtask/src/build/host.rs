//! What the checkout says of itself.

use crate::runner::Step;
use std::path::Path;

/// The day of the commit of a checkout in UTC, as `20261130`; none outside of git.
pub fn commit_day(folder: &Path) -> Option<String> {
    let folder = folder.join(".").display().to_string();
    let format = ["log", "-1", "--format=%cd", "--date=format-local:%Y%m%d"];
    let step = Step::new("the commit's day", ["git", "-C", &folder]).args(format).env("TZ", "UTC");
    step.read().ok()
}

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
