//! What is said when something is refused: an id, a place, the value, one way out.

mod id;

pub use id::{Exit, Id};

use std::fmt;

/// One thing that is wrong, in the form in which every command prints it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The stable id.
    pub id: Id,
    /// Where: `variants.yaml:12:11: releases."2.9".cuda`, a probe, or a program.
    pub place: String,
    /// What is wrong, the offending value included.
    pub what: String,
    /// One way out, as an imperative sentence or a command.
    pub cure: String,
}

impl Problem {
    /// A problem with all its parts.
    pub fn new(id: Id, place: impl Into<String>, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Problem { id, place: place.into(), what: what.into(), cure: cure.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}: {}\n  help: {}", self.id, self.place, self.what, self.cure)
    }
}

/// An error that ends the command: one or more problems, all those of a file together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub Vec<Problem>);

impl Refusal {
    /// The worst exit code among the problems, a refused input first: nothing was started then.
    pub fn exit(&self) -> Exit {
        let exits = || self.0.iter().map(|p| p.id.exit());
        if exits().any(|e| e == Exit::Refused) {
            return Exit::Refused;
        }
        exits().max().unwrap_or(Exit::Failed)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Refusal(vec![problem])
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

/// Ends the function with one problem; `anyhow` carries it to `main`, which prints it and sets the exit code.
pub fn refuse<T>(
    id: Id,
    place: impl Into<String>,
    what: impl Into<String>,
    cure: impl Into<String>,
) -> anyhow::Result<T> {
    Err(Refusal::from(Problem::new(id, place, what, cure)).into())
}

/// `Ok` without problems, otherwise all of them as one error.
pub fn all_or_nothing(problems: Vec<Problem>) -> anyhow::Result<()> {
    if problems.is_empty() { Ok(()) } else { Err(Refusal(problems).into()) }
}

/// The known name nearest to a misspelt one, if any is near enough to be meant.
///
/// Jaro-Winkler alone likes long names that hold the letters somewhere; the edits that lead to the name weigh as much.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| {
            (strsim::jaro_winkler(wrong, name) + strsim::normalized_damerau_levenshtein(wrong, name), name)
        })
        .filter(|(score, _)| *score > 1.1)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A problem with a name that is not in the list: the known ones, and the nearest spelling.
pub fn unknown_name<'a>(
    place: impl Into<String>,
    kind: &str,
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Problem {
    let known: Vec<&str> = known.into_iter().collect();
    let cure = match nearest(wrong, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? Known: {}", known.join(", ")),
        None => format!("known: {}", known.join(", ")),
    };
    Problem::new(Id::UnknownName, place, format!("there is no {kind} `{wrong}`"), cure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_input_wins_over_the_other_exits() {
        let p = |id| Problem::new(id, "", "", "");
        assert_eq!(Refusal(vec![p(Id::Network), p(Id::Schema)]).exit(), Exit::Refused);
        assert_eq!(Refusal(vec![p(Id::Smoke), p(Id::Disk)]).exit(), Exit::Unusable);
        assert_eq!(Refusal(vec![p(Id::Smoke)]).exit(), Exit::Failed);
    }

    #[test]
    fn the_nearest_spelling_is_offered() {
        assert_eq!(nearest("runtme", ["runtime", "devel"]), Some("runtime"));
        assert_eq!(nearest("2.51", ["2.15", "2.9"]), Some("2.15"));
        assert_eq!(nearest("t5", ["rtx5090", "t4"]), Some("t4"));
        assert_eq!(nearest("zzz", ["runtime", "devel"]), None);
    }
}
