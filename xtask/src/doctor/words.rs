//! A report in words: what was checked, the verdict, its cure, and which of our releases run here.

use super::{Finding, Report, State};
use crate::explain::ours_words;
use crate::out::columns;

/// The report as lines of text.
pub fn words(report: &Report) -> String {
    let mark = |state| match state {
        State::Good => "✓",
        State::Bad => "✗",
        State::NotChecked => "–",
    };
    let row = |check: &super::Check| [format!("{} {}", mark(check.state), check.check), check.said.clone()];
    let rows: Vec<[String; 2]> = report.checks.iter().map(row).collect();
    let mut parts = vec![columns(&rows), finding(&report.main)];
    parts.extend(report.also.iter().map(|it| format!("also {}", finding(it))));
    if !report.ours.is_empty() {
        parts.push(format!("our releases here: {}", ours_words(&report.ours)));
    }
    parts.join("\n\n")
}

fn finding(it: &Finding) -> String {
    let cure = it.cure.iter().map(|line| format!("\n  → {line}"));
    format!("{}: {}{}", it.verdict, it.cause, cure.collect::<String>())
}
