//! The order of a build: everything that is decided before something runs, and the commands that come of it.

use super::App;
use crate::build::{self, Bake, Bases, Cache, Images, Roots, Secrets, apt_secrets, candidate, registry};
use crate::catalog::Platform;
use crate::cli::{Build as Args, Select};
use crate::engine::{Capabilities, Engine, ImageStore};
use crate::lock::Lock;
use crate::plan::{Action, Chosen, Existing, Planned, Sources};
use crate::problem::{Id, refuse};
use crate::project::Project;
use crate::render::{self, Files, dockerfile};
use crate::root::Ground;
use crate::runner::Step;
use crate::smoke::Request;
use crate::tiers::{Stacks, stacks};
use crate::wheels;
use anyhow::Result;
use std::collections::BTreeSet;
use std::sync::Once;

/// Everything that is known before an engine is asked.
pub struct Order<'a> {
    /// How things are said and where they are kept.
    pub app: &'a App,
    /// What was asked for.
    pub args: &'a Args,
    /// The catalog and its facts.
    pub project: &'a Project,
    /// The lock, proved to be of this catalog.
    pub lock: &'a Lock,
    /// The rendered files, proved to be on disk.
    pub files: &'a Files,
    /// What build steps are given in secret.
    pub secrets: &'a Secrets,
    /// The platform.
    pub platform: Platform,
    /// The commit of the project, or `unknown`.
    pub revision: String,
    cache_is_left_out: Once,
}

/// What is known of the images of one root once the engine was asked.
pub struct Prepared {
    /// The root's name.
    pub root: String,
    /// What it is.
    pub ground: Ground,
    /// What the engine has.
    pub existing: Existing,
    /// What is done, image by image.
    pub plans: Vec<Planned>,
    apt: Option<Secrets>,
    /// Whether what is built is in the engine by itself.
    in_engine: bool,
}

impl Prepared {
    /// The images that are built.
    pub fn to_build(&self) -> Vec<&Planned> {
        self.plans.iter().filter(|plan| plan.action == Action::Build).collect()
    }
}

impl<'a> Order<'a> {
    /// What was asked for, with what is read of the project.
    pub fn new(
        app: &'a App,
        args: &'a Args,
        project: &'a Project,
        (lock, files): (&'a Lock, &'a Files),
        secrets: &'a Secrets,
    ) -> Order<'a> {
        let platform = args.select.platform.unwrap_or_else(Platform::host);
        let revision = build::revision(&project.catalog.folder());
        Order { app, args, project, lock, files, secrets, platform, revision, cache_is_left_out: Once::new() }
    }

    /// Bytes of all wheels of the chosen releases.
    pub fn wheel_bytes(&self, chosen: &Chosen) -> Result<u64> {
        let mut releases: Vec<&String> = chosen.iter().map(|(release, _)| release).collect();
        releases.dedup();
        let mut bytes = 0;
        for release in releases {
            bytes += self.lock.releases[release].bytes(self.platform)?;
        }
        Ok(bytes)
    }

    /// Says which layers of some releases' bases are heavier than pulls well, and because of which wheel.
    pub fn tell_heavy<'r>(&self, releases: impl IntoIterator<Item = &'r String>) -> Result<()> {
        let sizes = &self.project.catalog.base.layers;
        for release in releases.into_iter().collect::<BTreeSet<_>>() {
            let wheels = self.lock.releases[release].wheels(self.platform)?;
            for (layer, megabytes, wheel) in render::above_budget(wheels, sizes) {
                self.app.out.say(&format!(
                    "{release}: the layer {layer} has {megabytes} MB, more than the {} that pull well: {} {} alone has {} MB",
                    sizes.budget_mb,
                    wheel.name,
                    wheel.version,
                    wheel.bytes / 1_000_000
                ));
            }
        }
        Ok(())
    }

    /// What the images of one root need of registries.
    pub fn needed(&self, root: &str, chosen: &Chosen) -> registry::Needed {
        let mirror = self.args.mirror.as_deref();
        registry::needed(&self.project.catalog, &self.project.resolved, chosen, root, mirror)
    }

    /// What the layers of an image are copied from, the topmost first.
    pub fn copied(&self, plan: &Planned) -> Vec<String> {
        let tiers = self.project.catalog.tiers(&plan.variant).into_iter().rev().map(|(tier, _)| tier);
        let dockerfiles =
            tiers.chain(["base"]).filter_map(|tier| dockerfile(self.files, &plan.release, tier));
        dockerfiles.flat_map(build::size::copied).collect()
    }

    /// Plans the images of one root; where it is only `looked` at, nothing is made.
    pub fn prepare(&self, engine: &Engine, root: &str, chosen: &Chosen, looked: bool) -> Result<Prepared> {
        let in_engine = match &self.args.builder {
            Some(builder) if engine.answers() => engine.has_builder(builder)?,
            _ => true,
        };
        let ground = self.ground(root, chosen, looked)?;
        let (catalog, resolved) = (&self.project.catalog, &self.project.resolved);
        let existing = match &self.args.registry {
            Some(registry) if !self.args.push => {
                let say = |line: &str| self.app.out.say(line);
                registry::existing((engine, &self.app.retry(&say)), catalog, resolved, chosen, registry)?
            }
            _ => Images { engine, catalog }.existing()?,
        };
        let plans = self.plans(&existing, chosen, (root, &ground))?;
        let it = &self.project.catalog.roots[root];
        let apt = it.image.is_some().then(|| apt_secrets(it, self.secrets.has_ca(), self.app.state()));
        Ok(Prepared { root: root.to_owned(), ground, existing, plans, apt: apt.transpose()?, in_engine })
    }

    fn ground(&self, root: &str, chosen: &Chosen, looked: bool) -> Result<Ground> {
        self.ground_for(self.platform, root, &stacks_of(self.project, chosen), looked)
    }

    /// A root for a platform, with layers of packages on it; where it is only `looked` at, nothing is made.
    ///
    /// Errors: what bootstrapping runs into; `E_PLATFORM` where this machine cannot run the platform.
    pub fn ground_for(
        &self,
        platform: Platform,
        root: &str,
        stacks: &Stacks,
        looked: bool,
    ) -> Result<Ground> {
        let roots = Roots {
            catalog: &self.project.catalog,
            lock: self.lock,
            platform,
            sources: self.args.apt_sources.as_deref().map(std::path::absolute).transpose()?,
            state: self.app.state(),
            say: &|line| self.app.out.say(line),
        };
        match looked {
            true => roots.known(root, stacks),
            false => roots.provide(root, stacks, self.args.locked),
        }
    }

    fn plans(&self, existing: &Existing, chosen: &Chosen, ground: (&str, &Ground)) -> Result<Vec<Planned>> {
        let copied = self.project.copied()?;
        let builder = match self.maker(ground.0) {
            Some(maker) => format!("{} {}", wheels::RECIPE, maker.codec),
            None => "dockerfile".to_owned(),
        };
        let sources = Sources {
            builder: &builder,
            catalog: &self.project.catalog,
            lock: self.lock,
            files: self.files,
            copied: &copied,
            platform: self.platform,
        };
        let plan = |(release, variant): &(String, String)| {
            sources.plan(release, variant, ground, existing, self.args.force || self.args.no_cache)
        };
        chosen.iter().map(plan).collect()
    }

    /// The bake of some images; with `sent_to`, they are sent there as soon as they are put together, and not kept.
    ///
    /// Errors: `E_ENGINE` for a buildx that cannot do it.
    pub fn bake(
        &self,
        engine: &Engine,
        prepared: &Prepared,
        bases: &Bases,
        plans: &[&Planned],
        sent_to: Option<&dyn Fn(&Planned) -> String>,
    ) -> Result<Step> {
        let can = engine.capabilities_once_started()?;
        if engine.build_network().is_some() && !can.bake_network {
            return refuse(
                Id::Engine,
                "docker buildx bake",
                "this buildx drops the network of a target, which the private engine needs",
                "use a mirror that has Debian testing, whose buildx keeps it; then `cargo xtask engine prune`",
            );
        }
        let cache = self.cache(&can);
        let bake = Bake {
            catalog: &self.project.catalog,
            images: plans,
            root: (&prepared.root, &prepared.ground),
            bases,
            secrets: self.secrets,
            apt: prepared.apt.as_ref(),
            platform: self.platform,
            revision: &self.revision,
            no_cache: self.args.no_cache,
            builder: self.args.builder.as_deref(),
            in_engine: prepared.in_engine,
            sent_to,
            // What keeps the images keeps their steps.
            cache: Cache { to: if sent_to.is_some() { &[] } else { cache.to }, ..cache },
            mirror: self.args.mirror.as_deref(),
            recompress: self.args.compression.is_some(),
        };
        Ok(bake.step(engine, &can))
    }

    /// The caches of steps, as far as the builder can keep some.
    fn cache(&self, can: &Capabilities) -> Cache<'_> {
        let Args { cache_from: from, cache_to: to, builder, .. } = self.args;
        let keeps = builder.is_some() || can.image_store == ImageStore::Containerd;
        if !keeps && !to.is_empty() {
            // However many bakes there are.
            self.cache_is_left_out.call_once(|| {
                self.app.out.say("warning: --cache-to is left out: docker keeps steps for others only in containerd's image store, or with --builder");
            });
        }
        Cache { from, to: if keeps { to } else { &[] } }
    }

    /// The smoke test of an image.
    pub fn request<'r>(&'r self, plan: &Planned, image: &'r str) -> Request<'r> {
        Request {
            image,
            plan: Some(&self.lock.releases[&plan.release].facts),
            gpus: self.args.gpus.as_deref(),
            require_gpu: self.args.require_gpu,
        }
    }

    /// The very commands, in their order; the names are those that the plan expects.
    pub fn commands(&self, engine: &Engine, prepared: &Prepared) -> Result<Vec<Step>> {
        let plans = prepared.to_build();
        if plans.is_empty() {
            return Ok(Vec::new());
        }
        let images = Images { engine, catalog: &self.project.catalog };
        let bases = self.known_bases(prepared, &plans)?;
        let mut steps = vec![self.bake(engine, prepared, &bases, &plans, None)?];
        for plan in plans {
            let candidate = candidate(&self.project.catalog, plan);
            steps.push(self.request(plan, &candidate).step(engine));
            steps.extend(plan.references.iter().map(|name| images.tag_step(&candidate, name)));
        }
        Ok(steps)
    }
}

/// The root that a release stands on.
///
/// Errors: `E_PYTHON` for a root whose interpreter is not the one that the wheels are locked for.
pub fn root_of<'a>(project: &'a Project, release: &str, select: &'a Select) -> Result<&'a str> {
    let catalog = &project.catalog;
    let (own, its) = catalog.root_of(catalog.release(release)?);
    let root = select.root.as_deref().unwrap_or(own);
    let other = &catalog.roots[root];
    if root != own && (other.python != its.python || other.image.is_some() || its.image.is_some()) {
        return refuse(
            Id::Python,
            "--root",
            format!("release {release} is locked and rendered for the root {own}, not for {root}"),
            format!(
                "write `root: {root}` into the release, then `cargo xtask lock --update && cargo xtask render`"
            ),
        );
    }
    Ok(root)
}

/// Images by the root that they stand on.
///
/// Errors: those of [`root_of`].
pub fn by_root(project: &Project, chosen: &Chosen, select: &Select) -> Result<Vec<(String, Chosen)>> {
    let mut groups: Vec<(String, Chosen)> = Vec::new();
    for (release, variant) in chosen {
        let root = root_of(project, release, select)?;
        let pair = (release.clone(), variant.clone());
        match groups.iter_mut().find(|(name, _)| name == root) {
            Some((_, pairs)) => pairs.push(pair),
            None => groups.push((root.to_owned(), vec![pair])),
        }
    }
    Ok(groups)
}

/// The layers of packages that images are made from.
fn stacks_of(project: &Project, chosen: &Chosen) -> Stacks {
    let of =
        |(release, variant): &(String, String)| stacks(&project.catalog, &project.resolved[release], variant);
    chosen.iter().flat_map(of).collect()
}
