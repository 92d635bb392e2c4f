//! `publish`: what passed gets its names, all of it or none.

use super::App;
use crate::attest::{provenance, sbom};
use crate::build;
use crate::catalog::{Catalog, Platform};
use crate::cli::{Publish as Args, Published, Require, Select, Sign};
use crate::plan::Chosen;
use crate::problem::{Exit, Id, Problem, Refusal, refuse};
use crate::project::Project;
use crate::publish::promote::{self, Name};
use crate::publish::sign::{Signer, Signing};
use crate::publish::{Candidate, Demand, Image, Proved, candidate, report};
use crate::registry::{Registry, Repository};
use anyhow::Result;

/// Proves the whole set, then gives the names; a table tells what was done and what was not.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let project = app.project()?;
    let chosen = chosen(&project, &args.what)?;
    let folder = project.catalog.folder();
    let revision = build::revision(&folder);
    candidate::check_revision("git", &revision, args.allow_dirty)?;
    let Some(date) = args.release_date.clone().or_else(|| build::commit_day(&folder)) else {
        return refuse(
            Id::NoRevision,
            "git",
            "there is no commit to take the day from",
            "give --release-date",
        );
    };
    let say = |line: &str| app.out.say(line);
    let registry = app.registry(&say)?;
    let at = Repository::below(&args.what.registry, &project.catalog.repository)?;
    let set = Set { project: &project, registry: &registry, at: &at, revision: &revision, args };
    let images = set.prove(&chosen)?;
    let there = promote::there(&registry, &at, &project.catalog, &images)?;
    let mut names = promote::names(&project.catalog, &images, &date, &there)?;
    let given = if app.dry_run { Ok(()) } else { set.give(&images, &mut names) };
    app.out.result(&promote::table(&names), &names)?;
    given
}

/// The images that a command is about: of the default release and every variant, unless some are named.
pub fn chosen(project: &Project, what: &Published) -> Result<Chosen> {
    let default = || vec![project.catalog.defaults.release.clone()];
    let release = if what.release.is_empty() { default() } else { what.release.clone() };
    let all = what.variant.is_empty();
    project.select(&Select { release, variant: what.variant.clone(), all, ..Select::default() })
}

/// What is published together.
struct Set<'a> {
    project: &'a Project,
    registry: &'a Registry<'a>,
    at: &'a Repository,
    revision: &'a str,
    args: &'a Args,
}

impl Set<'_> {
    /// The whole set, or every reason why there is none.
    fn prove(&self, chosen: &Chosen) -> Result<Vec<Image>> {
        let (mut images, mut problems) = (Vec::new(), Vec::<Problem>::new());
        for (release, variant) in chosen {
            match self.image(release, variant) {
                Ok(image) => images.extend(image),
                Err(error) => match error.downcast::<Refusal>() {
                    // A registry that is away is away for the others too.
                    Ok(refusal) if is_away(&refusal) => return Err(refusal.into()),
                    Ok(refusal) => problems.extend(refusal.0),
                    Err(error) => return Err(error),
                },
            }
        }
        crate::problem::all_or_nothing(problems)?;
        Ok(images)
    }

    fn image(&self, release: &str, variant: &str) -> Result<Option<Image>> {
        let catalog = &self.project.catalog;
        let demand = Demand {
            gpu_tested: self.args.require == Some(Require::GpuTested),
            allow_dirty: self.args.allow_dirty,
        };
        let mut proved = Vec::new();
        for platform in self.platforms(catalog) {
            let tag = candidate::tag(self.revision, (release, variant), *platform);
            let found =
                Candidate::find(self.registry, self.at, catalog, &tag, (release, variant, *platform))?;
            let facts = &self.project.resolved[release];
            proved.push(Proved::new(self.registry, self.at, catalog, (found, facts), demand)?);
        }
        Proved::join(proved)
    }

    fn platforms<'b>(&'b self, catalog: &'b Catalog) -> &'b [Platform] {
        if self.args.platform.is_empty() { &catalog.defaults.platforms } else { &self.args.platform }
    }

    /// Immutable names first; none that moves does before all of those are there, and signed.
    fn give(&self, images: &[Image], names: &mut [Name]) -> Result<()> {
        promote::give(self.registry, self.at, images, names, false)?;
        self.sign(images)?;
        promote::give(self.registry, self.at, images, names, true)?;
        promote::verify(self.registry, self.at, names)
    }

    /// Signs every digest that users meet: the images, those of each platform, and what is attached to them.
    fn sign(&self, images: &[Image]) -> Result<()> {
        let Some(signer) = signer(&self.args.sign) else {
            return Ok(());
        };
        let signing = Signing::new(&signer, self.registry, !self.args.sign.no_transparency_log)?;
        let ours = [
            report::artifact_type(&self.project.catalog),
            sbom::MEDIA_TYPE.to_owned(),
            provenance::MEDIA_TYPE.to_owned(),
        ];
        for digest in images.iter().flat_map(Image::digests) {
            signing.sign(&self.at.at(digest))?;
            for attached in self.registry.all_referrers(self.at, digest)? {
                if ours.iter().any(|it| attached.artifact_type.as_ref() == Some(it)) {
                    signing.sign(&self.at.at(attached.digest))?;
                }
            }
        }
        Ok(())
    }
}

/// Who signs, where somebody is to.
fn signer(args: &Sign) -> Option<Signer> {
    match (&args.key, &args.identity, &args.issuer) {
        (Some(key), ..) => Some(Signer::Key(key.clone())),
        (_, Some(identity), Some(issuer)) => {
            Some(Signer::Identity { identity: identity.clone(), issuer: issuer.clone() })
        }
        _ => None,
    }
}

/// Whether a registry cannot be used at all, rather than lacks something.
fn is_away(refusal: &Refusal) -> bool {
    refusal.exit() == Exit::Unusable && refusal.0.iter().all(|problem| problem.id != Id::BaseGone)
}
