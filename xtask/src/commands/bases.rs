//! The part of an order that is about bases: what makes them, and which are there.

use super::order::{Order, Prepared};
use crate::build::shared::Shared;
use crate::build::{BaseImage, Bases, Maker};
use crate::cli::{BaseBuilder, Codec};
use crate::engine::Engine;
use crate::layout::Layer;
use crate::out::gigabytes;
use crate::plan::Planned;
use crate::root::{Ground, RootLayout};
use crate::wheels;
use anyhow::Result;
use std::time::Instant;

impl Order<'_> {
    /// Whether the bases on some roots are made straight from wheels: only the layers of a root that is bootstrapped are at
    /// hand.
    pub fn makes_layers(&self, roots: &[&str]) -> bool {
        let is_made = |root: &&str| self.project.catalog.roots[*root].image.is_none();
        self.args.base.base_builder == BaseBuilder::Layers && roots.iter().all(is_made)
    }

    /// What makes the bases on a root straight from wheels.
    pub fn maker(&self, root: &str) -> Option<Maker<'_>> {
        self.makes_layers(&[root]).then(|| Maker {
            catalog: &self.project.catalog,
            lock: self.lock,
            files: self.files,
            platform: self.platform,
            codec: self.codec(),
            cache: self.app.cache(),
            state: self.app.state(),
            out: &self.app.out,
        })
    }

    fn codec(&self) -> wheels::Codec {
        match self.args.base.codec {
            Codec::Splice => wheels::Codec::Splice,
            Codec::Zstd => wheels::Codec::Zstd(self.project.catalog.base.layers.level as i32),
        }
    }

    /// The bases of some images, made straight from wheels, each as `base` gives it; none where Dockerfiles make them.
    pub fn bases(
        &self,
        prepared: &Prepared,
        plans: &[&Planned],
        base: impl Fn(&Maker, &Planned, &RootLayout) -> Result<BaseImage>,
    ) -> Result<Bases> {
        let (Some(maker), Ground::Made { root, .. }) = (self.maker(&prepared.root), &prepared.ground) else {
            return Ok(Bases::new());
        };
        let mut bases = Bases::new();
        for plan in plans {
            if !bases.contains_key(&plan.release) {
                bases.insert(plan.release.clone(), base(&maker, plan, root)?);
            }
        }
        Ok(bases)
    }

    /// The bases of some images without making anything.
    pub fn known_bases(&self, prepared: &Prepared, plans: &[&Planned]) -> Result<Bases> {
        let known = |maker: &Maker, plan: &Planned, root: &RootLayout| {
            maker.known(&plan.release, root, root).map(BaseImage::Layout)
        };
        self.bases(prepared, plans, known)
    }

    /// Gives an engine of this machine the layers that a build would send it otherwise.
    pub fn give_layers(&self, engine: &Engine, prepared: &Prepared, bases: &Bases) -> Result<()> {
        if self.args.builder.is_some() {
            return Ok(());
        }
        let start = Instant::now();
        let mut bytes = 0;
        if let Ground::Made { root, packages } = &prepared.ground {
            for layout in std::iter::once(root).chain(packages.values()) {
                bytes += engine.give(&layout.dir, &layout.digest)?;
            }
        }
        for (dir, digest) in bases.values().filter_map(BaseImage::made) {
            bytes += engine.give(dir, digest)?;
        }
        if bytes > 0 {
            let what = format!("{} into the engine", gigabytes(bytes));
            self.app.out.say_at(start.elapsed().as_secs_f64(), &what);
        }
        Ok(())
    }

    /// The bases of some images: what is here, what another machine has `shared`, or else made. `there` is told of each
    /// layer that is here as soon as it is.
    pub fn provide_bases(
        &self,
        engine: &Engine,
        prepared: &Prepared,
        plans: &[&Planned],
        shared: Option<&Shared>,
        there: &(dyn Fn(Layer) + Sync),
    ) -> Result<Bases> {
        self.bases(prepared, plans, |maker, plan, root| {
            // A builder elsewhere is nearer to the registry than to this machine.
            let is_near = self.args.builder.is_none() && maker.has(&plan.release, root)?;
            if let Some(shared) = shared.filter(|_| !is_near)
                && let Some(found) = shared.find(maker, plan, root)?
            {
                self.app.out.say(&format!("base of {}: {found}", plan.release));
                return Ok(BaseImage::Registry(found));
            }
            maker.provide(&plan.release, root, root, engine, there).map(BaseImage::Layout)
        })
    }
}
