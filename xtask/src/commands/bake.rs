//! The part of `build` in which the engine makes images: bases given to it, one bake, and layers sent meanwhile.

use super::build::Run;
use super::order::Prepared;
use super::push::Push;
use crate::build::{Bases, Phases, Report, disk};
use crate::faults;
use crate::out::word;
use crate::plan::{Planned, bytes_to_fetch};
use crate::problem::Id;
use crate::runner::Step;
use anyhow::Result;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

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
        let shared = self.push.as_ref().map(Push::shared);
        let bases = self.timed(
            |times| &mut times.base,
            || self.order.provide_bases(self.engine, prepared, &plans, shared.as_ref()),
        )?;
        self.timed(|times| &mut times.bake, || self.order.give_layers(self.engine, prepared, &bases))?;
        self.sending(&bases, || self.bake_on(prepared, &plans, &bases))
    }

    /// Does some work while the layers of the bases are sent, where images are to be sent at all.
    fn sending<T>(&self, bases: &Bases, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(push) = &self.push else {
            return work();
        };
        let (sending, layouts) = (push.sending(), push.layouts(bases));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| sending.send(&layouts, &stop));
            let done = work();
            stop.store(done.is_err(), Ordering::Relaxed);
            let sent = self.timed(|times| &mut times.push, || sent.join());
            if let (Ok(_), Ok(Err(error))) = (&done, sent) {
                self.order.app.out.say(&format!("the engine sends what is left: {error}"));
            }
            done
        })
    }

    fn bake_on(
        &self,
        prepared: &Prepared,
        plans: &[&Planned],
        bases: &Bases,
    ) -> Result<BTreeMap<String, anyhow::Error>> {
        let bake = |plans: &[&Planned]| self.follow(&self.order.bake(self.engine, prepared, bases, plans)?);
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
