//! Samples to a table: the median of every figure, and its ratio to the plain Dockerfile's.

use super::limit::{Limit, Rates};
use super::usage::Usage;
use super::{Case, Sample, Way};
use crate::build::{Phases, Times};
use crate::out::{gigabytes, word};
use serde::Serialize;
use std::collections::BTreeMap;

/// A case in one way: its median sample, and how it compares.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// What happened before.
    pub case: Case,
    /// Who built.
    pub way: Way,
    /// The median of every figure on its own.
    pub median: Sample,
    /// All runs.
    pub runs: Vec<Sample>,
    /// Ratio of the seconds to a local image to those of the plain Dockerfile; none without that.
    pub local_ratio: Option<f64>,
    /// The same for the registry.
    pub registry_ratio: Option<f64>,
    /// Ratio of the bytes sent.
    pub sent_ratio: Option<f64>,
    /// What bounds it on this machine.
    pub limit: Limit,
}

/// Every case and way that was run, the cases in their order.
pub fn cells(samples: &BTreeMap<(Case, Way), Vec<Sample>>, rates: &Rates) -> Vec<Cell> {
    let cell = |((case, way), runs): (&(Case, Way), &Vec<Sample>)| {
        let median = median(runs);
        let plain = samples.get(&(case.of_plain(), Way::Plain)).map(|runs| self::median(runs));
        let ratio = |of: fn(&Sample) -> f64| {
            plain.as_ref().map(|plain| of(&median) / of(plain)).filter(|it| it.is_finite())
        };
        Cell {
            case: *case,
            way: *way,
            local_ratio: ratio(|it| it.local),
            registry_ratio: ratio(|it| it.registry),
            sent_ratio: ratio(|it| it.usage.sent as f64),
            limit: rates.limit(&median.usage),
            runs: runs.clone(),
            median,
        }
    };
    samples.iter().map(cell).collect()
}

fn median(runs: &[Sample]) -> Sample {
    let of = |figure: fn(&Sample) -> f64| {
        let mut all: Vec<f64> = runs.iter().map(figure).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    Sample {
        local: of(|it| it.local),
        registry: of(|it| it.registry),
        whole: of(|it| it.whole),
        times: Times {
            root: of(|it| it.times.root),
            base: of(|it| it.times.base),
            bake: of(|it| it.times.bake),
            phases: Phases {
                fetch: of(|it| it.times.phases.fetch),
                install: of(|it| it.times.phases.install),
                extract: of(|it| it.times.phases.extract),
                copy: of(|it| it.times.phases.copy),
                export: of(|it| it.times.phases.export),
                unpack: of(|it| it.times.phases.unpack),
                push: of(|it| it.times.phases.push),
            },
            smoke: of(|it| it.times.smoke),
            push: of(|it| it.times.push),
            sent: of(|it| it.times.sent),
        },
        usage: Usage {
            cpu: of(|it| it.usage.cpu),
            fetched: of(|it| it.usage.fetched as f64) as u64,
            sent: of(|it| it.usage.sent as f64) as u64,
            blobs: of(|it| it.usage.blobs as f64) as u64,
            written: of(|it| it.usage.written as f64) as u64,
            disk: of(|it| it.usage.disk as f64) as u64,
        },
    }
}

/// How the cells compare, as rows with their head first.
pub fn ratios(cells: &[Cell]) -> Vec<[String; 9]> {
    let head = ["CASE", "WAY", "LOCAL", "RATIO", "REGISTRY", "RATIO", "SENT", "RATIO", "BLOBS"];
    let ratio = |it: Option<f64>| it.map(|it| format!("{it:.2}")).unwrap_or_default();
    rows(head, cells, |cell| {
        let it = &cell.median;
        [
            seconds(it.local),
            ratio(cell.local_ratio),
            seconds(it.registry),
            ratio(cell.registry_ratio),
            gigabytes(it.usage.sent),
            ratio(cell.sent_ratio),
            it.usage.blobs.to_string(),
        ]
        .into()
    })
}

/// Where the time of the cells went, in seconds.
pub fn phases(cells: &[Cell]) -> Vec<[String; 13]> {
    let head = [
        "CASE", "WAY", "ROOT", "BASE", "BAKE", "FETCH", "INSTALL", "EXTRACT", "JOIN", "EXPORT", "UNPACK",
        "SMOKE", "PUSH",
    ];
    rows(head, cells, |cell| {
        let (it, inside) = (&cell.median.times, &cell.median.times.phases);
        let spans = [
            it.root,
            it.base,
            it.bake,
            inside.fetch,
            inside.install,
            inside.extract,
            inside.copy,
            inside.export,
            inside.unpack,
        ];
        spans.into_iter().chain([it.smoke, it.push + inside.push]).map(|it| format!("{it:.1}")).collect()
    })
}

/// What the cells used of the machine, and what bounds them.
pub fn usage(cells: &[Cell]) -> Vec<[String; 8]> {
    let head = ["CASE", "WAY", "WHOLE", "CPU", "FETCHED", "WRITTEN", "PEAK DISK", "LIMIT"];
    rows(head, cells, |cell| {
        let it = &cell.median.usage;
        let limit = format!("{} ({})", seconds(cell.limit.seconds), cell.limit.by);
        [
            seconds(cell.median.whole),
            seconds(it.cpu),
            gigabytes(it.fetched),
            gigabytes(it.written),
            gigabytes(it.disk),
            limit,
        ]
        .into()
    })
}

fn seconds(it: f64) -> String {
    format!("{it:.1} s")
}

/// Rows that begin with case and way; `rest` gives the other cells.
fn rows<const N: usize>(
    head: [&str; N],
    cells: &[Cell],
    rest: impl Fn(&Cell) -> Vec<String>,
) -> Vec<[String; N]> {
    let row = |cell: &Cell| {
        let mut words = [word(cell.case), word(cell.way)].into_iter().chain(rest(cell));
        std::array::from_fn(|_| words.next().unwrap_or_default())
    };
    std::iter::once(head.map(str::to_owned)).chain(cells.iter().map(row)).collect()
}

/// The machine in a line, from `/proc/cpuinfo` and `/proc/meminfo`, and what the calibration found.
pub fn machine(rates: &Rates) -> String {
    let read = |path: &str, key: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.split_once(':').map(|it| it.1.trim().to_owned()));
        line.unwrap_or_else(|| "unknown".to_owned())
    };
    let memory = read("/proc/meminfo", "MemTotal").split(' ').next().and_then(|it| it.parse::<u64>().ok());
    format!(
        "{} cores ({}), {} of memory; one download {:.0} MB/s, disk {:.0} MB/s",
        rates.cores,
        read("/proc/cpuinfo", "model name"),
        gigabytes(memory.unwrap_or_default() * 1024),
        rates.network / 1e6,
        rates.disk / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(local: f64, sent: u64) -> Sample {
        let times = Times { smoke: 4.0, push: 5.0, ..Times::default() };
        Sample {
            local,
            registry: local,
            times,
            usage: Usage { sent, cpu: 7.0, ..Usage::default() },
            whole: 30.0,
        }
    }

    #[test]
    fn a_figure_is_a_median_and_a_ratio_to_the_plain_case_it_is_held_against() {
        let samples = BTreeMap::from([
            ((Case::Wheel, Way::Ours), vec![sample(30.0, 3), sample(10.0, 9), sample(20.0, 2)]),
            ((Case::Wheels, Way::Plain), vec![sample(200.0, 300)]),
        ]);
        let rates = Rates { network: 1.0, disk: 1.0, cores: 1 };
        let cells = cells(&samples, &rates);
        assert_eq!(cells.len(), 2);
        let ours = &cells[0];
        assert_eq!((ours.median.local, ours.median.usage.sent), (20.0, 3));
        assert_eq!((ours.local_ratio, ours.sent_ratio), (Some(0.1), Some(0.01)));
        assert_eq!(ratios(&cells)[1][..4], ["wheel", "ours", "20.0 s", "0.10"]);
        assert_eq!(phases(&cells)[1][11..], ["4.0", "5.0"]);
        assert_eq!(usage(&cells)[1][7], "7.0 s (cpu)");
    }
}
