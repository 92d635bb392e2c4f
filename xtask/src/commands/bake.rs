//! The part of `build` in which the engine makes images: bases given to it, one bake, and what is sent meanwhile.

use super::build::Run;
use super::order::Prepared;
use super::push::Push;
use crate::build::{Bases, Phases, Report, disk};
use crate::faults;
use crate::http::Failure;
use crate::layout::Layer;
use crate::out::word;
use crate::plan::{Planned, bytes_to_fetch};
use crate::problem::Id;
use crate::runner::Step;
use anyhow::Result;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

impl Run<'_> {
    /// One bake for all of them. Where that fails and the others are to go on, each is tried alone: what is done is
    /// kept. Returns the failures by target.
    pub(super) fn bake(&self, prepared: &Prepared) -> Result<BTreeMap<String, anyhow::Error>> {
        let plans = prepared.to_build();
        if plans.is_empty() {
            return Ok(BTreeMap::new());
        }
        // An engine on another machine keeps its own accounts.
        if let Some(disk) = self.engine.disk()? {
            let new_bytes = bytes_to_fetch(&plans, &prepared.existing);
            let from_layers = self.order.makes_layers(&[&prepared.root]);
            disk::enough(&disk.root, disk.free, disk::needed(new_bytes, from_layers))?;
        }
        for plan in &plans {
            self.order.app.out.say(&format!(
                "building {} {}: {}",
                plan.release,
                plan.variant,
                word(plan.reason)
            ));
        }
        self.order.tell_heavy(plans.iter().map(|plan| &plan.release))?;
        match &self.push {
            Some(push) => self.bake_and_send(push, prepared, &plans),
            None => {
                let bases = self.bases(prepared, &plans, &|_| ())?;
                self.bake_on(prepared, &plans, &bases)
            }
        }
    }

    /// The bases that images stand on, given to the engine. `there` is told of each layer as soon as it is there.
    fn bases(
        &self,
        prepared: &Prepared,
        plans: &[&Planned],
        there: &(dyn Fn(Layer) + Sync),
    ) -> Result<Bases> {
        let shared = self.push.as_ref().map(Push::shared);
        let provide = || self.order.provide_bases(self.engine, prepared, plans, shared.as_ref(), there);
        let bases = self.timed(|times| &mut times.base, provide)?;
        self.timed(|times| &mut times.bake, || self.order.give_layers(self.engine, prepared, &bases))?;
        Ok(bases)
    }

    /// Bakes, and sends everything meanwhile: a layer as soon as it is made, an image as soon as it is put together, which
    /// is long before the engine has unpacked it for its proof. What did not get through is sent after that.
    fn bake_and_send(
        &self,
        push: &Push,
        prepared: &Prepared,
        plans: &[&Planned],
    ) -> Result<BTreeMap<String, anyhow::Error>> {
        let (sending, stop, start) = (push.sending(), AtomicBool::new(false), Instant::now());
        thread::scope(|scope| {
            let (queue, layers) = mpsc::channel();
            let layers = scope.spawn(|| sending.send(layers, &stop));
            let work = || {
                let as_they_are = push.takes_layers();
                // Where sending has failed, nobody listens any more.
                let there = |layer| drop(as_they_are.then(|| queue.send(layer)));
                let bases = self.bases(prepared, plans, &there)?;
                push.layers(&bases)?.into_iter().for_each(there);
                drop(queue);
                let images = push.early(prepared, &bases, plans)?;
                let sent = scope.spawn(move || images_sent(layers, images, start));
                Ok((self.bake_on(prepared, plans, &bases)?, sent))
            };
            let done: Result<_> = work().inspect_err(|_| stop.store(true, Ordering::Relaxed));
            let (failed, sent) = done?;
            // What one that panicked has not sent is the engine's to send.
            match self.timed(|times| &mut times.push, || sent.join()).unwrap_or(Ok(None)) {
                Ok(time) => self.times.borrow_mut().sent += time.unwrap_or_default().as_secs_f64(),
                // They were put together in one go, which ends with the first that fails.
                Err(_) if !failed.is_empty() => {}
                Err(error) => self.order.app.out.say(&format!("the engine sends what is left: {error}")),
            }
            Ok(failed)
        })
    }

    fn bake_on(
        &self,
        prepared: &Prepared,
        plans: &[&Planned],
        bases: &Bases,
    ) -> Result<BTreeMap<String, anyhow::Error>> {
        let bake =
            |plans: &[&Planned]| self.follow(&self.order.bake(self.engine, prepared, bases, plans, None)?);
        match bake(plans) {
            Ok(()) => Ok(BTreeMap::new()),
            Err(error) if !self.order.args.keep_going => Err(error),
            Err(error) if plans.len() == 1 => Ok(BTreeMap::from([(plans[0].target.clone(), error)])),
            Err(_) => {
                let alone = |plan: &&Planned| Some((plan.target.clone(), bake(&[*plan]).err()?));
                Ok(plans.iter().filter_map(alone).collect())
            }
        }
    }

    fn follow(&self, step: &Step) -> Result<()> {
        let (path, log) = self.order.app.log("build.log")?;
        let mut report = Report::new(&self.order.app.out, log);
        let status = self.timed(|times| &mut times.bake, || step.stream(|_, line| report.line(line)))?;
        if !status.success() {
            let place = format!("build (log: {})", path.display());
            return Err(faults::error(&place, &report.last_words(), Id::Build));
        }
        let phases = report.finish();
        self.order.app.out.say(&spans(&phases));
        self.times.borrow_mut().phases += phases;
        Ok(())
    }
}

/// The spans of a build in one line.
fn spans(phases: &Phases) -> String {
    format!(
        "times: fetch {:.1} s, install {:.1} s, extract {:.1} s, join {:.1} s, export {:.1} s, unpack {:.1} s",
        phases.fetch, phases.install, phases.extract, phases.copy, phases.export, phases.unpack
    )
}

/// Sends images as soon as their layers are sent, and says how long it took from the `start`, if it could.
fn images_sent(
    layers: ScopedJoinHandle<Result<()>>,
    images: Option<Step>,
    start: Instant,
) -> Result<Option<Duration>> {
    layers.join().unwrap_or(Ok(()))?;
    let Some(images) = images else {
        return Ok(None);
    };
    let said = images.output()?;
    match said.status.success() {
        true => Ok(Some(start.elapsed())),
        false => Err(Failure::of_words(&said.stderr).error(images.reason)),
    }
}
