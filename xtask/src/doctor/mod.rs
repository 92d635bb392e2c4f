//! The cause when a GPU does not work, not the symptom. Probes look, checks judge what they found in the order of cause
//! and effect, and one verdict comes out with its evidence and what to do about it on this engine.

mod checks;
mod cure;
mod facts;
mod probes;
mod requirement;
mod source;
mod verdict;
mod words;

pub use facts::{Facts, Image};
pub use probes::{Subject, look};
pub use source::Source;
pub use verdict::Verdict;
pub use words::words;

use crate::compat::Compat;
use crate::explain::Ours;
use serde::Serialize;
use std::collections::BTreeMap;

/// What was found out, and what follows from it.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The cause, its evidence and its cure.
    #[serde(flatten)]
    pub main: Finding,
    /// The code that the program ends with.
    pub exit: u8,
    /// What else is in the way.
    pub also: Vec<Finding>,
    /// Every check in order.
    pub checks: Vec<Check>,
    /// Which engine was asked.
    pub engine: facts::Engine,
    /// The GPUs.
    pub gpus: Vec<facts::Gpu>,
    /// The catalog's releases, and what keeps each from running here; empty where the driver is not known.
    pub ours: Vec<Ours>,
}

/// Something that is in the way.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The stable id.
    pub verdict: Verdict,
    /// What is the matter, in a sentence with the numbers.
    pub cause: String,
    /// The numbers by name.
    pub evidence: BTreeMap<&'static str, String>,
    /// What to do, the first first. Nothing that was seen to be in order.
    pub cure: Vec<String>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Check {
    /// Its name.
    pub check: &'static str,
    /// Whether it is in order.
    pub state: State,
    /// What was seen.
    pub said: String,
    /// What is in the way.
    #[serde(skip)]
    pub finding: Option<Finding>,
}

/// Whether a thing is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum State {
    Good,
    Bad,
    NotChecked,
}

/// What checks judge by.
struct Case<'a> {
    facts: &'a Facts,
    compat: &'a Compat,
    ours: &'a [Ours],
}

/// Judges what was found. `ours` are the catalog's releases with what each lacks on this driver and its GPUs.
pub fn diagnose(facts: Facts, ours: Vec<Ours>, compat: &Compat) -> Report {
    let checks = checks::all(&Case { facts: &facts, compat, ours: &ours });
    let mut found: Vec<Finding> = checks.iter().filter_map(|check| check.finding.clone()).collect();
    found.sort_by_key(|finding| finding.verdict);
    let main = match found.is_empty() {
        true => fine(&facts),
        false => found.remove(0),
    };
    let gpus = facts.driver.gpus().to_vec();
    Report { exit: main.verdict.exit(), main, also: found, checks, engine: facts.engine, gpus, ours }
}

fn fine(facts: &Facts) -> Finding {
    let what = match (&facts.container, &facts.image) {
        (Some(container), _) => format!("`{}` can use its GPU", container.name),
        (None, Some(image)) => format!("`{}` runs on this host's GPU", image.name),
        (None, None) => "containers can use this host's GPU".to_owned(),
    };
    let cure = match facts.container {
        Some(_) => Vec::new(),
        None => vec![format!("start them with {}", cure::attach(&facts.engine))],
    };
    Finding::new(Verdict::Ok, what, &[], cure)
}

impl Finding {
    fn new(
        verdict: Verdict,
        cause: impl Into<String>,
        evidence: &[(&'static str, &str)],
        cure: Vec<String>,
    ) -> Finding {
        let evidence = evidence.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Finding { verdict, cause: cause.into(), evidence, cure }
    }
}

impl Check {
    fn good(check: &'static str, said: impl Into<String>) -> Check {
        Check { check, state: State::Good, said: said.into(), finding: None }
    }

    fn skipped(check: &'static str, why: impl Into<String>) -> Check {
        Check { check, state: State::NotChecked, said: why.into(), finding: None }
    }

    fn bad(check: &'static str, finding: Finding) -> Check {
        Check { check, state: State::Bad, said: finding.cause.clone(), finding: Some(finding) }
    }
}
