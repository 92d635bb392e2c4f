//! The part of `build` that sends candidates to a registry, with what is told of them.

use super::order::{Order, Prepared};
use crate::attest::{inventory, provenance, sbom};
use crate::build::shared::Shared;
use crate::build::{BaseImage, Bases, Sending, Tagged, Transfer, measured};
use crate::engine::{Engine, ImageStore};
use crate::layout::{self, Layer};
use crate::out::word;
use crate::plan::{Inputs, Planned};
use crate::publish::candidate::{self, configuration};
use crate::registry::{Artifact, Descriptor, Manifest, Reference, Repository};
use crate::root::Ground;
use crate::runner::Step;
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeMap;

/// Sends candidates.
pub struct Push<'a> {
    /// What is built.
    pub order: &'a Order<'a>,
    /// The way to the registry.
    pub transfer: Transfer<'a>,
    /// Where to.
    pub at: Repository,
}

impl Push<'_> {
    /// The bases that machines share there.
    pub fn shared(&self) -> Shared<'_> {
        Shared { registry: self.transfer.registry, at: &self.at }
    }

    /// What sends layers beside a build.
    pub fn sending(&self) -> Sending<'_> {
        let (policy, out) = (self.transfer.registry.retry().policy, &self.order.app.out);
        Sending { at: &self.at, policy, out }
    }

    /// Whether images are going to have the layers of their bases as they are.
    pub fn takes_layers(&self) -> bool {
        self.order.args.compression.is_none()
    }

    /// The layers of the bases that are here.
    pub fn layers(&self, bases: &Bases) -> Result<Vec<Layer>> {
        let mut layers = Vec::new();
        for (dir, digest) in bases.values().filter_map(BaseImage::made) {
            layers.extend(layout::layers(dir, digest)?);
        }
        Ok(layers)
    }

    /// What sends candidates as soon as they are put together. An image whose steps all stand beside its base is made
    /// without unpacking that. None where the engine keeps images unpacked only, somebody else builds them, or every step
    /// is to be run again: once, that is.
    pub fn early(&self, prepared: &Prepared, bases: &Bases, plans: &[&Planned]) -> Result<Option<Step>> {
        let engine = self.transfer.engine;
        let can = engine.capabilities_once_started()?.image_store == ImageStore::Containerd;
        let args = self.order.args;
        if !can || args.builder.is_some() || args.no_cache {
            return Ok(None);
        }
        let to = |plan: &Planned| self.candidate(plan).to_string();
        self.order.bake(engine, prepared, bases, plans, Some(&to)).map(Some)
    }

    /// The name of an image's candidate.
    fn candidate(&self, plan: &Planned) -> Reference {
        let image = (plan.release.as_str(), plan.variant.as_str());
        self.at.at(candidate::tag(&self.order.revision, image, self.order.platform))
    }

    /// An image that the registry has already, made from the same: published, or a candidate. It is a candidate of this
    /// commit then, and nothing is built or sent.
    pub fn already(&self, plan: &Planned) -> Result<Option<Tagged>> {
        let candidate = self.candidate(plan);
        let catalog = &self.order.project.catalog;
        let published = plan.references.iter().filter_map(|name| Some(self.at.at(name.split_once(':')?.1)));
        for reference in [candidate.clone()].into_iter().chain(published) {
            let Some(manifest) = self.transfer.registry.manifest(&reference)? else {
                continue;
            };
            let Some(configuration) = configuration(self.transfer.registry, &self.at, &manifest)? else {
                continue;
            };
            let is_same = Inputs::of(catalog, &configuration.labels()).input == plan.input;
            if is_same && self.is_proved(&manifest.digest)? {
                return self.take(&candidate, &reference, manifest).map(Some);
            }
        }
        Ok(None)
    }

    /// Whether an image was told about, which comes after its proof: one whose build did not get that far is built again.
    fn is_proved(&self, digest: &str) -> Result<bool> {
        Ok(!self.transfer.registry.referrers(&self.at, digest, provenance::MEDIA_TYPE)?.is_empty())
    }

    fn take(&self, candidate: &Reference, found: &Reference, manifest: Manifest) -> Result<Tagged> {
        if found != candidate {
            self.transfer.registry.put(candidate, &manifest)?;
        }
        Ok(Tagged { digest: manifest.digest, references: vec![candidate.to_string()] })
    }

    /// Sends an image of the engine, then what it holds and where it comes from, and names its base for other machines.
    pub fn send(&self, plan: &Planned, prepared: &Prepared, image: &Tagged) -> Result<Tagged> {
        let candidate = self.candidate(plan);
        self.order.app.out.say(&format!("pushing {candidate}"));
        let sent = self.transfer.push(&image.references[0], &image.digest, &candidate)?;
        let manifest = self.transfer.registry.manifest(&self.at.at(&sent.digest))?;
        for (artifact_type, content) in
            self.told(plan, prepared, &image.references[0], (&sent, manifest.as_ref()))?
        {
            let content = serde_json::to_vec(&content)?;
            if artifact_type == sbom::MEDIA_TYPE {
                measured::keep_bill(self.order.app.state(), plan, &content)?;
            }
            let artifact =
                Artifact { artifact_type: artifact_type.to_owned(), content, annotations: BTreeMap::new() };
            self.transfer.registry.attach(&self.at, &sent, &artifact)?;
        }
        if let (Some(maker), Ground::Made { root, .. }, Some(manifest)) =
            (self.order.maker(&prepared.root), &prepared.ground, &manifest)
        {
            self.shared().share(&maker, plan, root, manifest)?;
        }
        Ok(Tagged { digest: sent.digest, references: vec![candidate.to_string()] })
    }

    /// The commands that send images.
    pub fn steps(&self, prepared: &Prepared) -> Result<Vec<Step>> {
        let plans = prepared.to_build();
        let early = match plans.is_empty() {
            true => None,
            false => self.early(prepared, &self.order.known_bases(prepared, &plans)?, &plans)?,
        };
        let push = |plan| self.transfer.push_step(&self.candidate(plan));
        Ok(early.into_iter().chain(prepared.plans.iter().map(push)).collect())
    }

    fn told(
        &self,
        plan: &Planned,
        prepared: &Prepared,
        local: &str,
        (sent, manifest): (&Descriptor, Option<&Manifest>),
    ) -> Result<[(&'static str, Value); 2]> {
        let (order, engine): (&Order, &Engine) = (self.order, self.transfer.engine);
        let catalog = &order.project.catalog;
        let tiers = catalog.tiers(&plan.variant);
        let wheels =
            order.lock.releases[&plan.release].all(tiers.iter().map(|(tier, _)| *tier), order.platform);
        let hash =
            |wheel: &crate::lock::Wheel| ((wheel.name.clone(), wheel.version.clone()), wheel.sha256.clone());
        let hashes = wheels.into_iter().map(hash).collect();
        let subject =
            sbom::Subject { name: &catalog.repository, digest: &sent.digest, epoch: order.lock.epoch };
        let bill = sbom::bill(subject, &inventory::ask(engine, local)?, &hashes);
        // An image that was there already is of an older commit than this.
        let labels = match manifest {
            Some(manifest) => configuration(self.transfer.registry, &self.at, manifest)?,
            None => None,
        };
        let labels = labels.map(|it| it.labels()).unwrap_or_default();
        let builder = format!("engine:{}:{}", word(engine.kind()), engine.capabilities()?.version);
        let origin = provenance::Origin {
            catalog,
            lock: order.lock,
            plan,
            root: (&prepared.root, &prepared.ground),
            platform: order.platform,
            revision: labels.get(candidate::REVISION).map_or("unknown", String::as_str),
            builder: &builder,
        };
        let statement = provenance::statement(&origin, &sent.digest);
        Ok([(sbom::MEDIA_TYPE, bill), (provenance::MEDIA_TYPE, statement)])
    }
}
