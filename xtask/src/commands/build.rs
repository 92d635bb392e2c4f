//! `build`: plan → root → bake → smoke → tags; the digests alone on standard output.

use super::{App, smoke};
use crate::build::{
    self, Bake, Images, Outcome, Phases, Report, Roots, Secrets, Tagged, candidate, disk, registry,
};
use crate::catalog::Platform;
use crate::cli::{Build as Args, Select};
use crate::engine::{Capabilities, Engine};
use crate::faults;
use crate::lock::Lock;
use crate::out::word;
use crate::plan::{Action, Chosen, Existing, Planned, Sources, bytes_without_base};
use crate::problem::{Id, refuse};
use crate::project::Project;
use crate::render::Files;
use crate::root::Ground;
use crate::runner::Step;
use crate::smoke::{Record, Request};
use crate::tiers::{Stacks, stacks};
use anyhow::Result;
use std::collections::BTreeMap;
use std::time::Instant;

/// Builds what changed, and gives names to what passed.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let start = Instant::now();
    if args.push || args.registry.is_some() {
        return super::not_yet("build with --push or --registry");
    }
    let project = app.project()?;
    let chosen = project.select(&args.select)?;
    let (lock, files) = project.proved()?;
    let groups = by_root(&project, &chosen, &args.select)?;
    let secrets = Secrets::gather(args.ca_cert.as_deref())?;
    let platform = args.select.platform.unwrap_or_else(Platform::host);
    let order =
        Order { app, args, project: &project, lock: &lock, files: &files, secrets: &secrets, platform };
    let engine = app.find_engine(&project)?;
    if engine.is_new() && !app.dry_run {
        // It will have to hold everything: ask for room before anything is fetched.
        disk::check(app.state(), disk::needed(order.wheel_bytes(&chosen)?))?;
    }
    app.start(&engine)?;
    let mut outcomes = Vec::new();
    for (root, chosen) in groups {
        let (chosen, not_here) = order.available(&engine, &root, chosen)?;
        outcomes.extend(not_here);
        outcomes.extend(order.build_on(&engine, &root, &chosen)?);
    }
    if app.dry_run {
        return build::judge(outcomes);
    }
    if outcomes.len() > 1 {
        app.out.say(&build::table(&outcomes));
    }
    app.out.say(&format!("done in {:.1} s", start.elapsed().as_secs_f64()));
    let digests: Vec<&str> = outcomes.iter().filter_map(|it| Some(it.image.as_ref()?.digest.as_str())).collect();
    app.out.result(&digests.join("\n"), &outcomes)?;
    build::judge(outcomes)
}

/// Images by the root that they stand on.
///
/// Errors: `E_PYTHON` for a root whose interpreter is not the one that the wheels are locked for.
pub(super) fn by_root(project: &Project, chosen: &Chosen, select: &Select) -> Result<Vec<(String, Chosen)>> {
    let catalog = &project.catalog;
    let mut groups: Vec<(String, Chosen)> = Vec::new();
    for (release, variant) in chosen {
        let (own, its) = catalog.root_of(catalog.release(release)?);
        let root = select.root.as_deref().unwrap_or(own);
        let other = &catalog.roots[root];
        if root != own && (other.python != its.python || other.image.is_some() || its.image.is_some()) {
            return refuse(
                Id::Python,
                "--root",
                format!("release {release} is locked and rendered for the root {own}, not for {root}"),
                format!("write `root: {root}` into the release, then `cargo xtask lock --update && cargo xtask render`"),
            );
        }
        let pair = (release.clone(), variant.clone());
        match groups.iter_mut().find(|(name, _)| name == root) {
            Some((_, pairs)) => pairs.push(pair),
            None => groups.push((root.to_owned(), vec![pair])),
        }
    }
    Ok(groups)
}

/// The layers of packages that images are made from.
pub(super) fn stacks_of(project: &Project, chosen: &Chosen) -> Stacks {
    let of = |(release, variant): &(String, String)| {
        stacks(&project.catalog, &project.resolved[release], variant)
    };
    chosen.iter().flat_map(of).collect()
}

/// Everything that is known before an engine is asked.
struct Order<'a> {
    app: &'a App,
    args: &'a Args,
    project: &'a Project,
    lock: &'a Lock,
    files: &'a Files,
    secrets: &'a Secrets,
    platform: Platform,
}

impl Order<'_> {
    /// Bytes of all wheels of the chosen releases.
    fn wheel_bytes(&self, chosen: &Chosen) -> Result<u64> {
        let mut releases: Vec<&String> = chosen.iter().map(|(release, _)| release).collect();
        releases.dedup();
        let mut bytes = 0;
        for release in releases {
            bytes += self.lock.releases[release].bytes(self.platform)?;
        }
        Ok(bytes)
    }

    /// Drops what needs an image that no registry gives here. With `--all` or `--keep-going` the rest is built.
    fn available(&self, engine: &Engine, root: &str, chosen: Chosen) -> Result<(Chosen, Vec<Outcome>)> {
        let project = self.project;
        let mirror = self.args.mirror.as_deref();
        let needed = registry::needed(&project.catalog, &project.resolved, &chosen, root, mirror);
        if needed.is_empty() || (self.app.dry_run && !engine.answers()) {
            return Ok((chosen, Vec::new()));
        }
        let missing = registry::unavailable(engine, needed)?;
        if !self.args.select.all && !self.args.keep_going {
            crate::problem::all_or_nothing(missing.iter().map(|(problem, _)| problem.clone()).collect())?;
        }
        let why = |pair: &(String, String)| missing.iter().find(|(_, users)| users.contains(pair));
        let (left_out, rest): (Chosen, Chosen) = chosen.into_iter().partition(|pair| why(pair).is_some());
        let not_here = left_out.iter().filter_map(|pair| {
            Some(Outcome::not_here((&pair.0, &pair.1), why(pair)?.0.clone()))
        });
        Ok((rest, not_here.collect()))
    }

    fn build_on(&self, engine: &Engine, root: &str, chosen: &Chosen) -> Result<Vec<Outcome>> {
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let ground = self.ground(root, chosen)?;
        let images = Images { engine, catalog: &self.project.catalog };
        let existing = images.existing()?;
        let plans = self.plans(&existing, chosen, (root, &ground))?;
        let to_build: Vec<&Planned> = plans.iter().filter(|plan| plan.action == Action::Build).collect();
        for plan in plans.iter().filter(|plan| plan.action == Action::Skip) {
            self.app.out.say(&format!("{} {}: nothing changed", plan.release, plan.variant));
        }
        let mut failed = BTreeMap::new();
        if !to_build.is_empty() {
            let new_bytes = bytes_without_base(&to_build, &existing);
            failed = self.bake(&images, (root, &ground), &to_build, new_bytes)?;
        }
        if self.app.dry_run {
            return Ok(Vec::new());
        }
        let outcomes = self.finish(&images, &plans, failed);
        if !to_build.is_empty() {
            images.forget_superseded();
        }
        outcomes
    }

    /// Proves what was built and names it; the first that fails ends it, unless the others are to go on.
    fn finish(
        &self,
        images: &Images,
        plans: &[Planned],
        mut failed: BTreeMap<String, anyhow::Error>,
    ) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        let mut stopped = None;
        for plan in plans {
            let name = (plan.release.as_str(), plan.variant.as_str());
            let result = match (plan.action, failed.remove(&plan.target)) {
                (Action::Skip, _) => images.skipped(plan),
                (Action::Build, Some(error)) => Err(error),
                (Action::Build, None) if stopped.is_some() => {
                    images.untag(&candidate(images.catalog, plan));
                    continue;
                }
                (Action::Build, None) => self.prove(images, plan),
            };
            match result {
                Ok(image) => outcomes.push(Outcome::good(name, image, plan.action == Action::Build)),
                Err(error) if self.args.keep_going => outcomes.push(Outcome::failed(name, error)),
                Err(error) => stopped = stopped.or(Some(error)),
            }
        }
        stopped.map_or(Ok(outcomes), Err)
    }

    fn ground(&self, root: &str, chosen: &Chosen) -> Result<Ground> {
        let roots = Roots {
            catalog: &self.project.catalog,
            lock: self.lock,
            platform: self.platform,
            sources: self.args.apt_sources.as_deref().map(std::path::absolute).transpose()?,
            state: self.app.state(),
            say: &|line| self.app.out.say(line),
        };
        let stacks = stacks_of(self.project, chosen);
        match self.app.dry_run {
            true => roots.known(root, &stacks),
            false => roots.provide(root, &stacks, self.args.locked),
        }
    }

    fn plans(&self, existing: &Existing, chosen: &Chosen, ground: (&str, &Ground)) -> Result<Vec<Planned>> {
        let rootfs = self.project.rootfs()?;
        let sources =
            Sources { catalog: &self.project.catalog, lock: self.lock, files: self.files, rootfs: &rootfs };
        let plan = |(release, variant): &(String, String)| {
            sources.plan(release, variant, ground, existing, self.args.force)
        };
        chosen.iter().map(plan).collect()
    }

    /// One bake for all of them. Where that fails and the others are to go on, each is tried alone: what is done is
    /// kept. Returns the failures by target.
    fn bake(
        &self,
        images: &Images,
        root: (&str, &Ground),
        plans: &[&Planned],
        new_bytes: u64,
    ) -> Result<BTreeMap<String, anyhow::Error>> {
        let engine = images.engine;
        let can = if engine.answers() { engine.capabilities()? } else { Capabilities::of_private() };
        if engine.build_network().is_some() && !can.bake_network {
            return refuse(
                Id::Engine,
                "docker buildx bake",
                "this buildx drops the network of a target, which the private engine needs",
                "use a mirror that has Debian testing, whose buildx keeps it; then `cargo xtask engine prune`",
            );
        }
        let revision = build::revision(&self.project.catalog.folder());
        let step = |plans: &[&Planned]| {
            let catalog = &self.project.catalog;
            let (builder, mirror) = (self.args.builder.as_deref(), self.args.mirror.as_deref());
            let (platform, secrets, revision) = (self.platform, self.secrets, revision.as_str());
            Bake { catalog, images: plans, root, secrets, platform, revision, builder, mirror }.step(engine, &can)
        };
        if self.app.dry_run {
            return self.print(&step(plans), plans, images).map(|()| BTreeMap::new());
        }
        // An engine on another machine keeps its own accounts.
        if let Some(disk) = engine.disk()? {
            disk::enough(&disk.root, disk.free, disk::needed(new_bytes))?;
        }
        for plan in plans {
            self.app.out.say(&format!("building {} {}: {}", plan.release, plan.variant, word(plan.reason)));
        }
        match self.follow(&step(plans)) {
            Ok(()) => Ok(BTreeMap::new()),
            Err(error) if !self.args.keep_going => Err(error),
            Err(error) if plans.len() == 1 => Ok(BTreeMap::from([(plans[0].target.clone(), error)])),
            Err(_) => {
                let alone = |plan: &&Planned| Some((plan.target.clone(), self.follow(&step(&[*plan])).err()?));
                Ok(plans.iter().filter_map(alone).collect())
            }
        }
    }

    fn follow(&self, step: &Step) -> Result<()> {
        let (path, log) = self.app.log("build.log")?;
        let mut report = Report::new(&self.app.out, log);
        let status = step.stream(|_, line| report.line(line))?;
        if !status.success() {
            let place = format!("build (log: {})", path.display());
            return Err(faults::error(&place, &report.last_words(), Id::Build));
        }
        self.app.out.say(&times(&report.finish()));
        Ok(())
    }

    /// The smoke test, then the names; a candidate that fails keeps none.
    fn prove(&self, images: &Images, plan: &Planned) -> Result<Tagged> {
        let candidate = candidate(&self.project.catalog, plan);
        let proved = self.smoke(images.engine, plan, &candidate).and_then(|record| {
            self.keep(plan, &record)?;
            images.tag(&candidate, plan, &record.found)
        });
        images.untag(&candidate);
        let tagged = proved?;
        for reference in &tagged.references {
            self.app.out.say(&format!("tagged {reference}"));
        }
        Ok(tagged)
    }

    fn smoke(&self, engine: &Engine, plan: &Planned, image: &str) -> Result<Record> {
        self.app.out.say(&format!("smoke test of {} {}", plan.release, plan.variant));
        let request = self.request(plan, image);
        let record = request.run(engine, |line| self.app.out.say(&format!("  {line}")))?;
        self.app.out.say(&smoke::text(&record));
        Ok(record)
    }

    fn request<'r>(&'r self, plan: &Planned, image: &'r str) -> Request<'r> {
        Request {
            image,
            plan: Some(&self.lock.releases[&plan.release].facts),
            gpus: self.args.gpus.as_deref(),
            require_gpu: self.args.require_gpu,
        }
    }

    /// Keeps the record of the smoke test beside the logs.
    fn keep(&self, plan: &Planned, record: &Record) -> Result<()> {
        let name = format!("reports/{}-{}.json", plan.release, plan.variant);
        let text = serde_json::to_string_pretty(record)? + "\n";
        crate::files::write(&self.app.state().join(name), text.as_bytes())
    }

    /// The very commands, in their order; the names are those that the plan expects.
    fn print(&self, bake: &Step, plans: &[&Planned], images: &Images) -> Result<()> {
        let mut steps = vec![bake.clone()];
        for plan in plans {
            let candidate = candidate(&self.project.catalog, plan);
            steps.push(self.request(plan, &candidate).step(images.engine));
            steps.extend(plan.references.iter().map(|name| images.tag_step(&candidate, name)));
        }
        let lines: Vec<String> = steps.iter().map(Step::to_script).collect();
        let argv: Vec<_> = steps.iter().map(|step| (&step.reason, &step.env, &step.argv)).collect();
        self.app.out.result(&lines.join("\n"), &argv)
    }
}

/// The spans of a build in one line.
fn times(phases: &Phases) -> String {
    format!(
        "times: fetch {:.1} s, install {:.1} s, join {:.1} s, export {:.1} s, unpack {:.1} s",
        phases.fetch, phases.install, phases.copy, phases.export, phases.unpack
    )
}
