//! A build of ours: the command that people run, for a copy of the project.

use super::{Bed, Case, Sample};
use crate::build::Times;
use crate::out::Out;
use crate::problem::{Id, refuse};
use crate::runner::{Step, own_program, tail};
use anyhow::Result;
use std::path::Path;

/// What it is made from.
pub struct Ours<'a> {
    /// The copy of the project.
    pub bed: &'a Bed,
    /// The state folder, with the engine that is measured.
    pub state: &'a Path,
    /// The folder of wheels and layers.
    pub cache: &'a Path,
    /// The registry that it is sent to.
    pub registry: &'a str,
    /// The release.
    pub release: &'a str,
    /// The variant that is built, and the one that comes second.
    pub variants: [&'a str; 2],
    /// What makes the base, as the command line names it.
    pub builder: &'a str,
    /// Where words go.
    pub out: &'a Out,
}

impl Ours<'_> {
    /// Takes over what a case has changed.
    ///
    /// Errors: `E_CHECK` with the end of what was said.
    pub fn render(&self) -> Result<()> {
        self.follow(&["render"])
    }

    /// Builds, tests and sends an image.
    ///
    /// Errors: `E_CHECK` with the end of what was said.
    pub fn build(&self, case: Case) -> Result<Times> {
        let [first, second] = self.variants;
        let variant = if case == Case::Variant { second } else { first };
        let cache = self.cache.display().to_string();
        let what = ["build", "--release", self.release, "--variant", variant, "--base-builder", self.builder];
        let to = ["--push", "--allow-dirty", "--registry", self.registry, "--cache-dir", &cache];
        self.follow(&[&what[..], &to[..]].concat())?;
        Times::read(self.state)
    }

    /// What a build took. The registry has it while this machine's engine still unpacks it for its proof.
    pub fn sample(times: Times, case: Case, whole: f64) -> Sample {
        let (local, registry) = match case {
            Case::Unchanged => (whole, whole),
            _ if times.sent > 0.0 => (times.base + times.bake, times.sent),
            _ => (times.base + times.bake, times.base + times.bake + times.push),
        };
        Sample { local, registry, times, ..Sample::default() }
    }

    /// Runs a command and lets people see what it says.
    fn follow(&self, words: &[&str]) -> Result<()> {
        let step = command(&self.bed.catalog(), self.state, words)?;
        let mut said = String::new();
        let status = step.stream(|_, line| {
            said.push_str(&format!("{line}\n"));
            self.out.say(&format!("  {line}"));
        })?;
        if status.success() {
            return Ok(());
        }
        let what = format!("`{}` failed:\n{}", step.to_line(), tail(&said, 10));
        refuse(Id::Check, "bench", what, "fix the cause, then run the same command again")
    }
}

/// A command of this program for a catalog and a state folder, whose engine is a private one.
///
/// Errors: those of [`own_program`].
pub fn command(catalog: &Path, state: &Path, words: &[&str]) -> Result<Step> {
    let [file, state] = [catalog, state].map(|path| path.display().to_string());
    let options = ["--file", &file, "--state", &state, "--engine", "private", "--allow-unverified"];
    Ok(Step::new("a build that is measured", [own_program()?]).args(words.iter().copied()).args(options))
}
