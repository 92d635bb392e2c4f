//! Images of the engine: which there are, what they were made from, and the names they are given.

use super::bake::CANDIDATE;
use super::size::{Layer, Size};
use crate::catalog::Catalog;
use crate::engine::{Engine, ImageStore};
use crate::plan::{Existing, Inputs, Planned};
use crate::problem::{Id, refuse};
use crate::runner::Step;
use crate::smoke::Found;
use crate::tags::{Truth, references, tags};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The images of one engine.
pub struct Images<'a> {
    /// Who has them.
    pub engine: &'a Engine,
    /// Whose repository and labels are meant.
    pub catalog: &'a Catalog,
}

/// An image with its names, as a result.
#[derive(Clone, Debug, Serialize)]
pub struct Tagged {
    /// The digest that the engine knows it by.
    pub digest: String,
    /// Its names, the most precise first.
    pub references: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    id: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    repo_tags: Vec<String>,
    config: Option<Config>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    labels: Option<BTreeMap<String, String>>,
}

impl Images<'_> {
    /// Every image of the repository: what it was made from, by reference.
    pub fn existing(&self) -> Result<Existing> {
        if !self.engine.answers() {
            return Ok(Existing::new());
        }
        let filter = format!("reference={}", self.catalog.repository);
        let list = self.engine.docker("which images there are", ["image", "ls", "--quiet", "--no-trunc"]);
        let ids = list.args(["--filter", &filter]).read()?;
        let mut ids: Vec<&str> = ids.lines().collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(Existing::new());
        }
        let mut existing = Existing::new();
        for image in self.inspect(&ids)? {
            let labels = image.config.and_then(|config| config.labels).unwrap_or_default();
            let inputs = Inputs::of(self.catalog, &labels);
            for reference in image.repo_tags {
                existing.insert(reference, inputs.clone());
            }
        }
        Ok(existing)
    }

    /// Whether the engine has an image of this name.
    pub fn has(&self, reference: &str) -> Result<bool> {
        let step = self.engine.docker("is it there", ["image", "inspect", "--format", "{{.Id}}", reference]);
        Ok(!self.engine.is_new() && step.output()?.status.success())
    }

    /// The digest of an image.
    pub fn digest(&self, reference: &str) -> Result<String> {
        let mut found = self.inspect(&[reference])?;
        Ok(found.pop().with_context(|| format!("{reference} is gone"))?.id)
    }

    /// What an image weighs; `sources` are what its layers were copied from, the topmost first.
    pub fn size(&self, reference: &str, sources: &[String]) -> Result<Size> {
        let mut found = self.inspect(&[reference])?;
        let image = found.pop().with_context(|| format!("{reference} is gone"))?;
        // The classic store keeps layers unpacked and tells that size.
        let sent = self.engine.capabilities()?.image_store == ImageStore::Containerd;
        let step = self.engine.docker("what it weighs", ["history", "--no-trunc", "--human=false"]);
        let lines = step.args(["--format", "{{json .}}", reference]).read()?;
        let layers = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Layer>, _>>()?;
        Ok(Size::new(sent.then_some(image.size), layers, sources))
    }

    fn inspect(&self, ids: &[&str]) -> Result<Vec<Inspected>> {
        let step = self.engine.docker("what they are", ["image", "inspect"]);
        Ok(serde_json::from_str(&step.args(ids.iter().copied()).read()?)?)
    }

    /// An image and the names that are true of what was found in it; it has none of them yet.
    ///
    /// Errors: `E_IMAGE_DIFFERS` where the image does not tell what a name must tell.
    pub fn named(&self, image: &str, plan: &Planned, found: &Found) -> Result<Tagged> {
        let truth = truth(image, (&plan.release, &plan.variant), found)?;
        let references = references(self.catalog, tags(self.catalog, &truth)?);
        Ok(Tagged { digest: self.digest(image)?, references })
    }

    /// Gives an image its names.
    pub fn tag(&self, from: &str, references: &[String]) -> Result<()> {
        references.iter().try_for_each(|reference| self.tag_step(from, reference).read().map(drop))
    }

    /// The command that gives an image one name.
    pub fn tag_step(&self, from: &str, to: &str) -> Step {
        self.engine.docker("a name for what passed", ["image", "tag", from, to])
    }

    /// Takes a name away; the image goes with its last name.
    pub fn untag(&self, reference: &str) {
        // A candidate that is not there any more is what is wanted.
        self.engine
            .docker("the candidate's name goes", ["image", "rm", reference])
            .taking_back()
            .output()
            .ok();
    }

    /// Takes away what a run left that could not finish: containers of its smoke tests, names of its candidates.
    pub fn forget_unfinished(&self) {
        if !self.engine.answers() {
            return;
        }
        let candidates = format!("{}:{CANDIDATE}", self.catalog.repository);
        let of_candidates = |reason: &str, list: &[&str]| -> Vec<String> {
            let step = self.engine.docker(reason, list.iter().copied()).taking_back();
            let lines = step.read().unwrap_or_default();
            lines.lines().filter(|line| line.starts_with(&candidates)).map(str::to_owned).collect()
        };
        let containers = ["container", "ls", "--all", "--format", "{{.Image}} {{.ID}}"];
        for line in of_candidates("smoke tests that were left", &containers) {
            let id = line.rsplit(' ').next().unwrap_or_default();
            let step =
                self.engine.docker("a smoke test that was left goes", ["container", "rm", "--force", id]);
            // The next run comes here again.
            step.taking_back().output().ok();
        }
        let images = ["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"];
        of_candidates("candidates that were left", &images).iter().for_each(|name| self.untag(name));
    }

    /// Removes images of this project that lost all their names to newer ones.
    pub fn forget_superseded(&self) {
        let ours = format!("label={}", self.catalog.label("variant"));
        let step =
            self.engine.docker("what was superseded goes", ["image", "prune", "--force", "--filter", &ours]);
        // They take room and do no harm.
        step.output().ok();
    }

    /// An image that was there already, as a result.
    pub fn skipped(&self, plan: &Planned) -> Result<Tagged> {
        Ok(Tagged { digest: self.digest(&plan.references[0])?, references: plan.references.clone() })
    }
}

/// What the names of an image may tell, from what was found in it.
///
/// Errors: `E_IMAGE_DIFFERS` where the image does not tell what a name must tell.
pub fn truth<'a>(image: &str, (release, variant): (&'a str, &'a str), found: &'a Found) -> Result<Truth<'a>> {
    let (Some(cuda), Some(cudnn)) = (&found.cuda, &found.cudnn) else {
        return refuse(
            Id::ImageDiffers,
            image,
            "it holds a CPU build of torch",
            "look for an index that serves other wheels than the lock's",
        );
    };
    let torch = found.torch.split('+').next().unwrap_or_default();
    Ok(Truth { torch, release, cuda, cudnn, variant })
}
