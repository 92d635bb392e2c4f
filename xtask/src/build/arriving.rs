//! Wheels fetched and layers made of them, at the same time: what the network brings is packed while more of it comes.

use super::bases::Maker;
use super::disk;
use super::fetching::Meter;
use super::secrets::{indexes, indexes_or_default};
use crate::lock::{Uv, Wheel};
use crate::out::gigabytes;
use crate::wheels::{self, Arrivals, Base, Fetch, Group, Layer, Store};
use anyhow::Result;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// What the interpreter's layer needs in the cache while it is made, as a part of the wheels' bytes: of torch 2.15.0's 3.05 GB
/// it was a tenth.
const BESIDE: u64 = 6;

impl Maker<'_> {
    /// Fetches the wheels of some groups, and makes the layers of those that are missing, telling `there` of each; gives
    /// where the wheels are.
    ///
    /// Errors: what failed first, of either.
    pub(super) fn layers(
        &self,
        base: &Base,
        store: &Store,
        missing: &[&Group],
        groups: &[&Group],
        there: &(dyn Fn(&Layer) + Sync),
    ) -> Result<wheels::Files> {
        let mut wanted: Vec<_> =
            groups.iter().flat_map(|group| group.wheels.iter().chain(&group.others)).collect();
        wanted.sort_unstable_by_key(|wheel| &wheel.sha256);
        wanted.dedup();
        self.check_room(missing, &wanted)?;
        let indexes = match wanted.iter().any(|wheel| !wheels::place(self.cache, wheel).exists()) {
            true => indexes_or_default(|| Uv::find(self.state, &|line| self.out.say(line))?.default_index())?,
            false => indexes(),
        };
        let total = wanted.iter().map(|wheel| wheel.bytes).sum();
        let meter = Meter::new(self.out, "wheels", total);
        // One clock for both: the lines tell when something was there, not how long it took by itself.
        let start = Instant::now();
        let say = |what: &str| self.out.say_at(start.elapsed().as_secs_f64(), what);
        let (cache, came) = (self.cache, |bytes| meter.came(bytes));
        let fetch = Fetch { indexes: &indexes, cache, say: &|line| self.out.say(line), came: &came };
        let (arrivals, made) = (Arrivals::of(missing), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                fetch.bring(&wanted, &arrivals);
                meter.end();
                if !arrivals.has_failed() {
                    let (made, all) = (made.load(Ordering::Relaxed), missing.len());
                    let wheels = format!("{} wheels, {}", wanted.len(), gigabytes(total));
                    say(&format!("{wheels}; {made} of {all} layers were made meanwhile"));
                }
            });
            base.convert(store, &arrivals, &|layer| {
                made.fetch_add(1, Ordering::Relaxed);
                say(&format!("layer {}, {}", layer.name, gigabytes(layer.written.size)));
                there(layer);
            });
        });
        arrivals.into_files()
    }

    /// Asks for room before anything is fetched: for the wheels that are not here, and for the layers that are not made.
    fn check_room(&self, missing: &[&Group], wanted: &[&Wheel]) -> Result<()> {
        let is_new = |wheel: &&&Wheel| !wheels::place(self.cache, wheel).exists();
        let new: u64 = wanted.iter().filter(is_new).map(|wheel| wheel.bytes).sum();
        let layers: u64 = missing.iter().flat_map(|group| &group.wheels).map(|wheel| wheel.bytes).sum();
        let beside: u64 = wanted.iter().map(|wheel| wheel.bytes).sum::<u64>() / BESIDE;
        disk::check(self.cache, new + layers + beside)
    }
}
