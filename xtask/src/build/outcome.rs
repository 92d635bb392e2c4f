//! How it went, image by image: the summary of a build.

use super::images::Tagged;
use super::measured::{self, Measured};
use crate::out::{gigabytes, word};
use crate::problem::{Id, Problem, Refusal};
use crate::smoke::State;
use serde::Serialize;
use std::path::Path;

/// How it went with one image.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The release's name.
    pub release: String,
    /// The variant's name.
    pub variant: String,
    /// In a word.
    pub result: Verdict,
    /// The image, where there is one.
    #[serde(flatten)]
    pub image: Option<Tagged>,
    /// What was measured of it when it was built.
    #[serde(flatten)]
    pub figures: Option<Figures>,
    /// Why there is none: `E_SMOKE`, and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The same, said out.
    #[serde(skip)]
    problems: Vec<Problem>,
}

/// What a person asks first of an image.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Bytes as it is sent, or else as it lies in the engine.
    pub bytes: u64,
    /// Whether a GPU took part in its smoke test.
    pub state: Option<State>,
}

/// A result in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Verdict {
    Built,
    Skipped,
    Failed,
    NotBuildableHere,
}

impl Outcome {
    /// An image that is there: built now, or unchanged since.
    pub fn good(name: (&str, &str), image: Tagged, built: bool) -> Outcome {
        let result = if built { Verdict::Built } else { Verdict::Skipped };
        Outcome { image: Some(image), ..Outcome::new(name, result) }
    }

    /// Adds what was kept of this very image, if anything was.
    pub fn measured(&mut self, state: &Path) -> anyhow::Result<()> {
        let kept = Measured::kept(state, &self.release, &self.variant)?;
        let record = measured::kept_record(state, &self.release, &self.variant)?;
        let digest = self.image.as_ref().map(|image| image.digest.as_str());
        self.figures = kept.filter(|kept| Some(kept.digest.as_str()) == digest).map(|kept| Figures {
            bytes: kept.compressed.unwrap_or(kept.unpacked),
            state: record.map(|record| record.state),
        });
        Ok(())
    }

    /// An image that cannot be built on this machine.
    pub fn not_here(name: (&str, &str), problem: Problem) -> Outcome {
        Outcome::new(name, Verdict::NotBuildableHere).because(vec![problem])
    }

    /// An image that failed.
    pub fn failed(name: (&str, &str), error: anyhow::Error) -> Outcome {
        let problems = match error.downcast::<Refusal>() {
            Ok(refusal) => refusal.0,
            Err(error) => {
                let place = format!("{} {}", name.0, name.1);
                let cure = "correct the cause, and run the same command again";
                vec![Problem::new(Id::Build, place, format!("{error:#}"), cure)]
            }
        };
        Outcome::new(name, Verdict::Failed).because(problems)
    }

    fn new((release, variant): (&str, &str), result: Verdict) -> Outcome {
        let (release, variant) = (release.to_owned(), variant.to_owned());
        Outcome { release, variant, result, image: None, figures: None, id: None, problems: Vec::new() }
    }

    fn because(self, problems: Vec<Problem>) -> Outcome {
        Outcome { id: problems.first().map(|problem| problem.id.to_string()), problems, ..self }
    }
}

/// The outcomes as rows of a table, its head first.
pub fn table(outcomes: &[Outcome]) -> Vec<[String; 6]> {
    let head = ["RELEASE", "VARIANT", "RESULT", "REASON OR DIGEST", "SIZE", "SMOKE TEST"].map(str::to_owned);
    let row = |it: &Outcome| {
        let digest = it.image.as_ref().map(|image| image.digest.clone());
        let why = digest.or_else(|| it.id.clone()).unwrap_or_default();
        let size = it.figures.as_ref().map(|figures| gigabytes(figures.bytes)).unwrap_or_default();
        let state = it.figures.as_ref().and_then(|figures| figures.state).map(word).unwrap_or_default();
        [it.release.clone(), it.variant.clone(), word(it.result).replace('-', " "), why, size, state]
    };
    std::iter::once(head).chain(outcomes.iter().map(row)).collect()
}

/// Every problem of every image, each once, as the error that ends the command.
pub fn judge(outcomes: Vec<Outcome>) -> anyhow::Result<()> {
    let mut problems: Vec<Problem> = outcomes.into_iter().flat_map(|outcome| outcome.problems).collect();
    problems.sort();
    problems.dedup();
    crate::problem::all_or_nothing(problems)
}
