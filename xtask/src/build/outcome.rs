//! How it went, image by image: the summary of a build.

use super::images::Tagged;
use crate::out::{columns, word};
use crate::problem::{Id, Problem, Refusal};
use serde::Serialize;

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
    /// Why there is none: `E_SMOKE`, and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The same, said out.
    #[serde(skip)]
    problems: Vec<Problem>,
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
        Outcome { release, variant, result, image: None, id: None, problems: Vec::new() }
    }

    fn because(self, problems: Vec<Problem>) -> Outcome {
        Outcome { id: problems.first().map(|problem| problem.id.to_string()), problems, ..self }
    }
}

/// The outcomes as a table.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut rows = vec![["RELEASE", "VARIANT", "RESULT", "REASON OR DIGEST"].map(str::to_owned)];
    rows.extend(outcomes.iter().map(|it| {
        let digest = it.image.as_ref().map(|image| image.digest.clone());
        let why = digest.or_else(|| it.id.clone()).unwrap_or_default();
        [it.release.clone(), it.variant.clone(), word(it.result).replace('-', " "), why]
    }));
    columns(&rows)
}

/// Every problem of every image, each once, as the error that ends the command.
pub fn judge(outcomes: Vec<Outcome>) -> anyhow::Result<()> {
    let mut problems: Vec<Problem> = outcomes.into_iter().flat_map(|outcome| outcome.problems).collect();
    problems.sort();
    problems.dedup();
    crate::problem::all_or_nothing(problems)
}
