//! What runs on a machine that was described, where no versions were named.

use super::asked::Asked;
use super::machine::Lack;
use super::words::{ours_words, runs_words};
use super::{Ours, Question, RunsHere, Verdict, machine::Machine};
use crate::catalog::{Catalog, Platform};
use crate::compat::{Compat, Sm, Version};
use crate::resolve::Resolved;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;

/// What runs on a machine.
#[derive(Debug, Serialize)]
pub struct Here {
    /// Good where a release of this catalog runs; not known where the catalog has none to ask about.
    pub verdict: Verdict,
    platform: Platform,
    /// The name of the GPU, where one was given.
    gpu: Option<String>,
    /// Its compute capability.
    sm: Option<Sm>,
    driver: Option<String>,
    /// The lowest driver for that GPU, where there is one.
    gpu_floor: Option<String>,
    /// The newest release of this catalog that runs.
    take: Option<String>,
    /// Every release of this catalog, the newest first, and what it lacks.
    ours: Vec<Ours>,
    /// Of all that is known of torch.
    runs_here: RunsHere,
}

/// Answers a question about a machine alone.
///
/// Errors: a [`crate::problem::Refusal`] with every value that cannot be read, each at its flag.
pub fn here(
    asked: &Asked,
    catalog: &Catalog,
    ours: &BTreeMap<String, Resolved>,
    compat: &Compat,
) -> Result<Here> {
    let question = Question::read(asked, compat)?;
    let machine = Machine::new(&question, catalog, compat);
    let card = question.card.as_ref();
    let mut ours = machine.ours(ours);
    if card.and_then(|card| card.platform).is_some_and(|only| only != machine.platform) {
        ours.iter_mut().for_each(|it| it.lacks = vec![Lack::Platform]);
    }
    let take = ours.iter().find(|it| it.lacks.is_empty()).map(|it| it.release.clone());
    Ok(Here {
        verdict: match (&take, ours.is_empty()) {
            (Some(_), _) => Verdict::KnownGood,
            (None, true) => Verdict::Unknown,
            (None, false) => Verdict::KnownBad,
        },
        platform: machine.platform,
        gpu: card.and_then(|card| card.name.clone()),
        sm: card.map(|card| card.sm),
        driver: question.driver.as_ref().map(Version::to_string),
        gpu_floor: machine.gpu_floor().map(str::to_owned),
        take,
        ours,
        runs_here: RunsHere::new(&machine, None),
    })
}

impl Here {
    /// The answer as lines of text, the verdict first.
    pub fn words(&self) -> String {
        let verdict = match self.verdict {
            Verdict::KnownGood => "some of these images run",
            Verdict::KnownBad => "none of these images runs",
            Verdict::Unknown => "the catalog has no release to ask about",
        };
        let sm = self.sm.map(|sm| format!("sm {sm}"));
        let gpu = match (&self.gpu, sm) {
            (Some(name), Some(sm)) => Some(format!("{name} ({sm})")),
            (_, sm) => sm,
        };
        let driver = self.driver.as_ref().map(|driver| format!("driver {driver}"));
        let subject = [gpu, Some(self.platform.to_string()), driver].into_iter().flatten();
        let mut lines = vec![format!("{verdict} on {}", subject.collect::<Vec<_>>().join(", "))];
        let mut say = |label: &str, text: String| lines.push(format!("  {label:<9} {text}"));
        if let Some(take) = &self.take {
            say("take", format!("release {take}: `cargo xtask build --release {take} --variant runtime`"));
        }
        say("ours", ours_words(&self.ours));
        if let Some(floor) = &self.gpu_floor {
            say("driver", format!("this GPU needs ≥ {floor}"));
        }
        say("any torch", runs_words(&self.runs_here, true));
        lines.join("\n")
    }
}
