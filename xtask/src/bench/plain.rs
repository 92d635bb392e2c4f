//! The Dockerfile that one writes by hand: the same root, and one RUN with pip.

use super::{Case, Sample};
use crate::build::{Phases, Report, Secrets, Times};
use crate::engine::Engine;
use crate::faults;
use crate::files;
use crate::out::Out;
use crate::problem::Id;
use crate::root::RootLayout;
use crate::runner::Step;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What it is made from.
pub struct Plain<'a> {
    /// Who builds it.
    pub engine: &'a Engine,
    /// The same root as ours.
    pub root: RootLayout,
    /// The same trio, as exact requirements.
    pub trio: Vec<String>,
    /// What build steps are given in secret.
    pub secrets: Secrets,
    /// A folder for the Dockerfile.
    pub folder: PathBuf,
    /// The image's name in the registry.
    pub name: String,
    /// Where words go.
    pub out: &'a Out,
}

impl Plain<'_> {
    /// Its text; `salt` stands in a file that comes after the wheels.
    fn text(&self, salt: &str) -> String {
        let trio = self.trio.join(" ");
        format!(
            "FROM root\n\
             RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \\\n    \
                 --mount=type=secret,id=pip,target=/etc/pip.conf \\\n    \
                 --mount=type=cache,target=/root/.cache/pip \\\n    \
                 python3 -m venv /opt/venv \\\n \
              && PIP_CERT=/etc/ssl/certs/ca-certificates.crt /opt/venv/bin/pip install {trio}\n\
             COPY <<EOF /opt/bench.txt\n{salt}\nEOF\n\
             ENV PATH=/opt/venv/bin:$PATH\n"
        )
    }

    /// The command. With `again`, no step is taken from the cache; what pip keeps is.
    fn step(&self, again: bool) -> Step {
        let folder = self.folder.display().to_string();
        let root = format!("root=oci-layout://{}@{}", self.root.dir.display(), self.root.digest);
        let output = format!("type=image,name={},push=true", self.name);
        let words =
            ["buildx", "build", "--progress", "plain", "--provenance=false", "--build-context", &root];
        let step = self.engine.docker("the plain Dockerfile", words).args(["--output", &output]);
        let secret =
            |(id, path): (&str, &Path)| ["--secret".to_owned(), format!("id={id},src={}", path.display())];
        let step = step.args(self.secrets.files().flat_map(secret));
        let network = self.engine.build_network().map(|network| ["--network", network]);
        let step = step.args(network.into_iter().flatten());
        step.args(again.then_some("--no-cache")).args([folder])
    }

    /// Builds it, into the engine and the registry at once.
    ///
    /// Errors: what the build runs into.
    pub fn build(&self, case: Case) -> Result<Times> {
        let salt = if case == Case::File { "another" } else { "one" };
        files::write(&self.folder.join("Dockerfile"), self.text(salt).as_bytes())?;
        let log = std::fs::File::create(self.folder.join("build.log"))?;
        let mut report = Report::new(self.out, log);
        let start = Instant::now();
        let status = self.step(case == Case::Wheels).stream(|_, line| report.line(line))?;
        if !status.success() {
            return Err(faults::error("the plain Dockerfile", &report.last_words(), Id::Build));
        }
        let bake = start.elapsed().as_secs_f64();
        Ok(Times { bake, phases: report.finish(), ..Times::default() })
    }

    /// What a build took: for a local image nothing is sent, and for the registry nothing need be unpacked here.
    pub fn sample(times: Times) -> Sample {
        let Phases { unpack, push, .. } = times.phases;
        Sample { local: times.bake - push, registry: times.bake - unpack, times, ..Sample::default() }
    }
}
