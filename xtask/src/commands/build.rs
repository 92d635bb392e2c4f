//! `build`: plan → root → bake → smoke → tags; the digests alone on standard output.

use super::order::{Order, Prepared, by_root};
use super::push::Push;
use super::smoke;
use super::{App, base_only};
use crate::build::{
    self, Images, Measured, Outcome, Secrets, Tagged, Times, Transfer, candidate, disk, measured, registry,
    size,
};
use crate::cli::Build as Args;
use crate::engine::Engine;
use crate::github;
use crate::interrupt;
use crate::out::columns;
use crate::plan::{Action, Chosen, Planned};
use crate::publish::candidate::check_revision;
use crate::registry::Repository;
use crate::root;
use crate::runner::Step;
use crate::smoke::Record;
use anyhow::Result;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Builds what changed, and gives names to what passed.
pub fn run(app: &App, args: &Args) -> Result<()> {
    if args.base_only {
        return base_only::run(app, args);
    }
    let start = Instant::now();
    let mut project = app.project()?;
    let chosen = project.select(&args.select)?;
    let (lock, files) = project.proved()?;
    // The lock does not depend on it.
    let layers = &mut project.catalog.base.layers;
    layers.compression = args.compression.unwrap_or(layers.compression);
    let groups = by_root(&project, &chosen, &args.select)?;
    let alone = (!app.dry_run).then(|| app.alone()).transpose()?;
    let secrets = Secrets::gather(args.ca_cert.as_deref(), app.state())?;
    let order = Order::new(app, args, &project, (&lock, &files), &secrets);
    if args.push {
        check_revision("git", &order.revision, args.allow_dirty)?;
    }
    let wheel_bytes = order.wheel_bytes(&chosen)?;
    if !app.dry_run {
        app.open_cache()?;
        if args.builder.is_none() {
            root::can_run(order.platform)?;
        }
    }
    let engine = app.find_engine(&project)?;
    if engine.is_new() && !app.dry_run {
        // It will have to hold everything: ask for room before anything is fetched.
        let roots: Vec<&str> = groups.iter().map(|(root, _)| root.as_str()).collect();
        disk::check(app.state(), disk::needed(wheel_bytes, order.makes_layers(&roots)))?;
    }
    app.start(&engine)?;
    let say = |line: &str| app.out.say(line);
    let registry = app.registry(&say)?;
    let push = match &args.registry {
        Some(to) => Some(Push {
            order: &order,
            transfer: Transfer { engine: &engine, registry: &registry, out: &app.out },
            at: Repository::below(to, &project.catalog.repository)?,
        }),
        None => None,
    };
    let run = Run { order: &order, engine: &engine, push, start, times: RefCell::default() };
    let images = Images { engine: &engine, catalog: &project.catalog };
    if alone.as_ref().is_some_and(|alone| alone.died.is_some()) {
        images.forget_unfinished();
    }
    let mut outcomes = Vec::new();
    for (root, chosen) in groups {
        let (chosen, not_here) = run.available(&root, chosen)?;
        outcomes.extend(not_here);
        let built = run.build_on(&root, &chosen);
        if interrupt::check().is_err() {
            images.forget_unfinished();
        }
        outcomes.extend(built.map_err(|error| engine.blame("the build", error))?);
    }
    if app.dry_run {
        return build::judge(outcomes);
    }
    run.times.borrow().keep(app.state())?;
    for outcome in &mut outcomes {
        outcome.measured(app.state())?;
    }
    let table = build::table(&outcomes);
    app.out.say(&columns(&table));
    github::summarize("Images", &table);
    app.out.say(&format!("done in {:.1} s", start.elapsed().as_secs_f64()));
    let digests: Vec<&str> =
        outcomes.iter().filter_map(|it| Some(it.image.as_ref()?.digest.as_str())).collect();
    app.out.result(&digests.join("\n"), &outcomes)?;
    build::judge(outcomes)
}

/// A build under way.
pub(super) struct Run<'a> {
    pub(super) order: &'a Order<'a>,
    pub(super) engine: &'a Engine,
    start: Instant,
    pub(super) push: Option<Push<'a>>,
    pub(super) times: RefCell<Times>,
}

impl Run<'_> {
    /// Does a part of the work, and adds the time that it took to a span.
    pub(super) fn timed<T>(&self, span: fn(&mut Times) -> &mut f64, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        *span(&mut self.times.borrow_mut()) += start.elapsed().as_secs_f64();
        done
    }

    /// Drops what needs an image that no registry gives here. With `--all` or `--keep-going` the rest is built.
    fn available(&self, root: &str, chosen: Chosen) -> Result<(Chosen, Vec<Outcome>)> {
        let needed = self.order.needed(root, &chosen);
        if needed.is_empty() || (self.order.app.dry_run && !self.engine.answers()) {
            return Ok((chosen, Vec::new()));
        }
        let say = |line: &str| self.order.app.out.say(line);
        let missing = registry::unavailable((self.engine, &self.order.app.retry(&say)), needed);
        if !self.order.args.select.all && !self.order.args.keep_going {
            crate::problem::all_or_nothing(missing.iter().map(|(problem, _)| problem.clone()).collect())?;
        }
        let why = |pair: &(String, String)| missing.iter().find(|(_, users)| users.contains(pair));
        let (left_out, rest): (Chosen, Chosen) = chosen.into_iter().partition(|pair| why(pair).is_some());
        let not_here = left_out
            .iter()
            .filter_map(|pair| Some(Outcome::not_here((&pair.0, &pair.1), why(pair)?.0.clone())));
        Ok((rest, not_here.collect()))
    }

    fn build_on(&self, root: &str, chosen: &Chosen) -> Result<Vec<Outcome>> {
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let order = self.order;
        let mut prepared = self
            .timed(|times| &mut times.root, || order.prepare(self.engine, root, chosen, order.app.dry_run))?;
        let there = self.already(&mut prepared)?;
        for plan in prepared.plans.iter().filter(|plan| plan.action == Action::Skip) {
            order.app.out.say(&format!("{} {}: nothing changed", plan.release, plan.variant));
        }
        if order.app.dry_run {
            let mut steps = order.commands(self.engine, &prepared)?;
            if let Some(push) = &self.push {
                steps.extend(push.steps(&prepared)?);
            }
            let lines: Vec<String> = steps.iter().map(Step::to_script).collect();
            order.app.out.result(&lines.join("\n"), &steps)?;
            return Ok(Vec::new());
        }
        let failed = self.bake(&prepared)?;
        let images = Images { engine: self.engine, catalog: &order.project.catalog };
        let outcomes = self.finish(&images, &prepared, failed);
        if !prepared.to_build().is_empty() {
            images.forget_superseded();
        }
        Ok(there.into_iter().chain(outcomes?).collect())
    }

    /// Takes out what the registry has already.
    fn already(&self, prepared: &mut Prepared) -> Result<Vec<Outcome>> {
        let Some(push) = self.push.as_ref().filter(|_| !self.order.args.force && !self.order.app.dry_run)
        else {
            return Ok(Vec::new());
        };
        let (mut there, mut rest) = (Vec::new(), Vec::new());
        for plan in std::mem::take(&mut prepared.plans) {
            match push.already(&plan)? {
                Some(image) => {
                    self.order
                        .app
                        .out
                        .say(&format!("{} {}: the registry has it", plan.release, plan.variant));
                    there.push(Outcome::good((&plan.release, &plan.variant), image, false));
                }
                None => rest.push(plan),
            }
        }
        prepared.plans = rest;
        Ok(there)
    }

    /// Proves what was built and names it; the first that fails ends it, unless the others are to go on.
    fn finish(
        &self,
        images: &Images,
        prepared: &Prepared,
        mut failed: BTreeMap<String, anyhow::Error>,
    ) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        let mut stopped = None;
        for plan in &prepared.plans {
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
            let result = result.and_then(|image| match &self.push {
                Some(push) => self
                    .timed(|times| &mut times.push, || push.send(plan, prepared, &image))
                    .map_err(|error| self.engine.blame("the push", error)),
                None => Ok(image),
            });
            let result = result.map_err(|error| self.engine.blame("the build", error));
            match result {
                Ok(image) => outcomes.push(Outcome::good(name, image, plan.action == Action::Build)),
                Err(error) if self.order.args.keep_going => outcomes.push(Outcome::failed(name, error)),
                Err(error) => stopped = stopped.or(Some(error)),
            }
        }
        stopped.map_or(Ok(outcomes), Err)
    }

    /// The smoke test, then the names; a candidate that fails keeps none.
    fn prove(&self, images: &Images, plan: &Planned) -> Result<Tagged> {
        let candidate = candidate(&self.order.project.catalog, plan);
        let proved = self.smoke(images.engine, plan, &candidate).and_then(|record| {
            measured::keep_record(self.order.app.state(), plan, &record)?;
            let copied = self.order.copied(plan);
            let size = size::check(images, plan, &candidate, &record, &copied)?;
            self.order.app.out.say(&size.to_string());
            let tagged = images.named(&candidate, plan, &record.found)?;
            // An image with names is not built again: what is kept of it must be there before they are.
            self.measured(plan, &tagged, size)?.keep(self.order.app.state())?;
            images.tag(&candidate, &tagged.references)?;
            Ok(tagged)
        });
        images.untag(&candidate);
        let tagged = proved?;
        for reference in &tagged.references {
            self.order.app.out.say(&format!("tagged {reference}"));
        }
        Ok(tagged)
    }

    fn smoke(&self, engine: &Engine, plan: &Planned, image: &str) -> Result<Record> {
        self.order.app.out.say(&format!("smoke test of {} {}", plan.release, plan.variant));
        let request = self.order.request(plan, image);
        let say = |line: &str| self.order.app.out.say(&format!("  {line}"));
        let tested = self.timed(|times| &mut times.smoke, || request.run(engine, say));
        let record = tested.map_err(|error| engine.blame("the smoke test", error))?;
        self.order.app.out.say(&smoke::text(&record));
        Ok(record)
    }

    fn measured(&self, plan: &Planned, tagged: &Tagged, size: size::Size) -> Result<Measured> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        Ok(Measured::new(plan, tagged, size, now, self.start.elapsed().as_secs_f64()))
    }
}
