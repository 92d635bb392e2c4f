//! `build`: plan → root → bake → smoke → tags; the digests alone on standard output.

use super::{App, smoke};
use crate::build::{self, Bake, Images, Phases, Report, Roots, Secrets, Tagged, candidate, disk};
use crate::catalog::Platform;
use crate::cli::{Build as Args, Select};
use crate::engine::{Capabilities, Engine};
use crate::faults;
use crate::lock::Lock;
use crate::out::word;
use crate::plan::{Action, Existing, Planned, Sources, bytes_without_base};
use crate::problem::{Id, refuse};
use crate::project::{Chosen, Project};
use crate::render::Files;
use crate::root::RootLayout;
use crate::runner::Step;
use crate::smoke::{Record, Request};
use anyhow::Result;
use std::time::Instant;

/// Builds what changed, and gives names to what passed.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let start = Instant::now();
    if args.push || args.registry.is_some() || args.keep_going {
        return super::not_yet("build with --push, --registry or --keep-going");
    }
    let project = app.project()?;
    let chosen = project.select(&args.select)?;
    let (lock, files) = project.proved()?;
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
    let mut done = Vec::new();
    for (root, chosen) in by_root(&project, &chosen, &args.select)? {
        done.extend(order.build_on(&engine, &root, &chosen)?);
    }
    if app.dry_run {
        return Ok(());
    }
    app.out.say(&format!("done in {:.1} s", start.elapsed().as_secs_f64()));
    let digests: Vec<&str> = done.iter().map(|image| image.digest.as_str()).collect();
    app.out.result(&digests.join("\n"), &done)
}

/// Images by the root that they stand on.
pub(super) fn by_root(project: &Project, chosen: &Chosen, select: &Select) -> Result<Vec<(String, Chosen)>> {
    let mut groups: Vec<(String, Chosen)> = Vec::new();
    for (release, variant) in chosen {
        let (own, _) = project.catalog.root_of(project.catalog.release(release)?);
        let root = select.root.as_deref().unwrap_or(own);
        let pair = (release.clone(), variant.clone());
        match groups.iter_mut().find(|(name, _)| name == root) {
            Some((_, pairs)) => pairs.push(pair),
            None => groups.push((root.to_owned(), vec![pair])),
        }
    }
    Ok(groups)
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

    fn build_on(&self, engine: &Engine, root: &str, chosen: &Chosen) -> Result<Vec<Tagged>> {
        let layout = self.root(root)?;
        let images = Images { engine, catalog: &self.project.catalog };
        let existing = images.existing()?;
        let plans = self.plans(&existing, chosen, &layout)?;
        let to_build: Vec<&Planned> = plans.iter().filter(|plan| plan.action == Action::Build).collect();
        for plan in plans.iter().filter(|plan| plan.action == Action::Skip) {
            self.app.out.say(&format!("{} {}: nothing changed", plan.release, plan.variant));
        }
        if !to_build.is_empty() {
            let new_bytes = bytes_without_base(&to_build, &existing);
            self.bake(&images, (root, &layout), &to_build, new_bytes)?;
        }
        if self.app.dry_run {
            return Ok(Vec::new());
        }
        let finish = |plan: &Planned| match plan.action {
            Action::Skip => images.skipped(plan),
            Action::Build => self.prove(engine, &images, plan),
        };
        let done = plans.iter().map(finish).collect::<Result<Vec<Tagged>>>()?;
        if !to_build.is_empty() {
            images.forget_superseded();
        }
        Ok(done)
    }

    fn root(&self, name: &str) -> Result<RootLayout> {
        let roots = Roots {
            catalog: &self.project.catalog,
            lock: self.lock,
            platform: self.platform,
            sources: self.args.apt_sources.as_deref().map(std::path::absolute).transpose()?,
            state: self.app.state(),
            say: &|line| self.app.out.say(line),
        };
        match self.app.dry_run {
            true => roots.known(name),
            false => roots.provide(name, self.args.locked),
        }
    }

    fn plans(&self, existing: &Existing, chosen: &Chosen, layout: &RootLayout) -> Result<Vec<Planned>> {
        let rootfs = self.project.rootfs()?;
        let sources =
            Sources { catalog: &self.project.catalog, lock: self.lock, files: self.files, rootfs: &rootfs };
        chosen
            .iter()
            .map(|(release, variant)| {
                sources.plan(release, variant, &layout.digest, existing, self.args.force)
            })
            .collect()
    }

    fn bake(
        &self,
        images: &Images,
        root: (&str, &RootLayout),
        plans: &[&Planned],
        new_bytes: u64,
    ) -> Result<()> {
        let engine = images.engine;
        let bake = Bake {
            catalog: &self.project.catalog,
            images: plans,
            root,
            secrets: self.secrets,
            platform: self.platform,
            revision: &build::revision(&self.project.catalog.folder()),
            builder: self.args.builder.as_deref(),
        };
        let can = if engine.answers() { engine.capabilities()? } else { Capabilities::of_private() };
        if engine.build_network().is_some() && !can.bake_network {
            return refuse(
                Id::Engine,
                "docker buildx bake",
                "this buildx drops the network of a target, which the private engine needs",
                "use a mirror that has Debian testing, whose buildx keeps it; then `cargo xtask engine prune`",
            );
        }
        let step = bake.step(engine, &can);
        if self.app.dry_run {
            return self.print(&step, plans, images);
        }
        // An engine on another machine keeps its own accounts.
        if let Some(disk) = engine.disk()? {
            disk::enough(&disk.root, disk.free, disk::needed(new_bytes))?;
        }
        for plan in plans {
            self.app.out.say(&format!("building {} {}: {}", plan.release, plan.variant, word(plan.reason)));
        }
        let phases = self.follow(&step)?;
        self.app.out.say(&times(&phases));
        Ok(())
    }

    fn follow(&self, step: &Step) -> Result<Phases> {
        let (path, log) = self.app.log("build.log")?;
        let mut report = Report::new(&self.app.out, log);
        let status = step.stream(|_, line| report.line(line))?;
        if !status.success() {
            let place = format!("build (log: {})", path.display());
            return Err(faults::error(&place, &report.last_words(), Id::Build));
        }
        Ok(report.finish())
    }

    /// The smoke test, then the names; a candidate that fails keeps none.
    fn prove(&self, engine: &Engine, images: &Images, plan: &Planned) -> Result<Tagged> {
        let candidate = candidate(&self.project.catalog, plan);
        let proved = self.smoke(engine, plan, &candidate).and_then(|record| {
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
