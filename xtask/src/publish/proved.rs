//! What may be published: images whose smoke report says that they hold what was planned. There is no other way to make
//! one.

use super::candidate::{Candidate, check_revision};
use super::report::{Report, proof};
use crate::build;
use crate::catalog::Catalog;
use crate::problem::{Id, Problem, Refusal};
use crate::registry::{Descriptor, Document, Manifest, PlatformName, Registry, Repository};
use crate::resolve::Resolved;
use crate::smoke::{Record, State, differences};
use crate::tags::{Truth, moving};
use anyhow::Result;

/// What an image must show before it is published.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// A GPU took part in its smoke test.
    pub gpu_tested: bool,
    /// An unknown or changed revision will do.
    pub allow_dirty: bool,
}

/// An image of one platform that passed.
#[derive(Clone, Debug)]
pub struct Proved {
    candidate: Candidate,
    record: Record,
    state: State,
}

/// An image as users will pull it: of one platform, or an index of several that passed.
#[derive(Clone, Debug)]
pub struct Image {
    /// The release's name.
    pub release: String,
    /// The variant's name.
    pub variant: String,
    /// What the names will point at.
    pub manifest: Manifest,
    /// The weakest state of its platforms.
    pub state: State,
    /// The digests of its platforms.
    platforms: Vec<String>,
    record: Record,
}

impl Proved {
    /// Reads the reports of a candidate and judges them.
    ///
    /// Errors: `E_SMOKE`, `E_NOT_GPU_TESTED`, `E_IMAGE_DIFFERS`, `E_NO_REVISION`; a registry's own.
    pub fn new(
        registry: &Registry,
        at: &Repository,
        catalog: &Catalog,
        (candidate, facts): (Candidate, &Resolved),
        demand: Demand,
    ) -> Result<Proved> {
        let place = at.at(&candidate.manifest.digest).to_string();
        check_revision(&place, candidate.revision(), demand.allow_dirty)?;
        let reports = Report::all(registry, at, &candidate.manifest.digest, catalog)?;
        let report = proof(&place, &reports, demand.gpu_tested).map_err(Refusal::from)?;
        let Some(record) = report.record.clone() else {
            let problem =
                Problem::new(Id::Smoke, place, "its report holds no record", "run the smoke test again");
            return Err(Refusal::from(problem).into());
        };
        crate::problem::all_or_nothing(differences(&place, &record.found, facts))?;
        Ok(Proved { candidate, record, state: report.state })
    }

    /// Joins the platforms of an image; none where there are none.
    pub fn join(platforms: Vec<Proved>) -> Result<Option<Image>> {
        let manifest = match &platforms[..] {
            [] => return Ok(None),
            [one] => one.candidate.manifest.clone(),
            several => Manifest::of(&Document::index(several.iter().map(Proved::entry).collect()))?,
        };
        let weakest = platforms.iter().find(|it| it.state != State::GpuTested).unwrap_or(&platforms[0]);
        Ok(Some(Image {
            release: weakest.candidate.release.clone(),
            variant: weakest.candidate.variant.clone(),
            manifest,
            state: weakest.state,
            platforms: platforms.iter().map(|it| it.candidate.manifest.digest.clone()).collect(),
            record: weakest.record.clone(),
        }))
    }

    /// Its entry in an index.
    fn entry(&self) -> Descriptor {
        let (os, architecture) = self.candidate.platform.as_str().split_once('/').unwrap_or_default();
        let platform =
            PlatformName { os: os.to_owned(), architecture: architecture.to_owned(), variant: None };
        Descriptor { platform: Some(platform), ..self.candidate.manifest.descriptor() }
    }
}

impl Image {
    /// What its names may tell.
    pub fn truth(&self) -> Result<Truth<'_>> {
        build::truth(&self.manifest.digest, (&self.release, &self.variant), &self.record.found)
    }

    /// Its digest and those of its platforms, each once.
    pub fn digests(&self) -> impl Iterator<Item = &str> {
        let others = self.platforms.iter().filter(|it| **it != self.manifest.digest);
        std::iter::once(&self.manifest.digest).chain(others).map(String::as_str)
    }

    /// The names that move to it.
    pub fn moving(&self, catalog: &Catalog) -> Result<Vec<String>> {
        moving(catalog, &self.truth()?)
    }
}
