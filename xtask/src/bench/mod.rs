//! Ours against the plain Dockerfile, side by side: what is measured, and how it is told.
//!
//! Everything happens in one run on one engine, which is emptied between the ways: so a figure is a ratio that another
//! machine can check.

mod bed;
mod limit;
mod ours;
mod plain;
mod registry;
mod table;
mod usage;

pub use bed::Bed;
pub use limit::Rates;
pub use ours::{Ours, command};
pub use plain::Plain;
pub use registry::Registry;
pub use table::{Cell, cells, machine, phases, ratios, usage};
pub use usage::{Meter, Usage};

use clap::ValueEnum;
use serde::Serialize;

/// What happens before the build that is measured. The order is the one in which they are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// From nothing: no wheels, no layers, no images
    Cold,
    /// The same build again
    Unchanged,
    /// Another variant of the release
    Variant,
    /// One file of the variant changed
    File,
    /// A small wheel changed its version
    Wheel,
    /// The root changed, as after a security update
    Root,
    /// The wheels are cached, nothing else is
    Wheels,
}

/// Who makes the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// This program, straight from wheels
    Ours,
    /// This program, with the base's Dockerfile
    Dockerfile,
    /// One RUN with pip on the same root, as written by hand
    Plain,
}

impl Way {
    /// Whether a case is run this way.
    ///
    /// A plain Dockerfile has one RUN for all wheels: whatever moved before it, it is run again with what pip's cache has,
    /// which is the case `wheels`. The base's Dockerfile keeps no wheels, and its variants are built as ours are.
    pub fn runs(self, case: Case) -> bool {
        match self {
            Way::Ours => true,
            Way::Dockerfile => !matches!(case, Case::Wheels | Case::File),
            Way::Plain => matches!(case, Case::Cold | Case::Unchanged | Case::File | Case::Wheels),
        }
    }
}

impl Case {
    /// The case of the plain Dockerfile that a case is held against.
    pub fn of_plain(self) -> Case {
        match self {
            Case::Variant | Case::Wheel | Case::Root => Case::Wheels,
            same => same,
        }
    }
}

/// Ways and cases in the order in which they are run; none named means all. Ours is always there and comes first: it makes
/// the root that all share; and a way begins with `cold`, which its other cases stand on.
pub fn plan(against: &[Way], cases: &[Case], other_wheel: bool) -> Vec<(Way, Case)> {
    let wanted = |case: &Case| {
        let asked = *case == Case::Cold || cases.is_empty() || cases.contains(case);
        asked && (*case != Case::Wheel || other_wheel)
    };
    let held_against =
        |case: &Case| Case::value_variants().iter().any(|it| wanted(it) && it.of_plain() == *case);
    let has = |way: Way, case: &Case| {
        way.runs(*case) && if way == Way::Plain { held_against(case) } else { wanted(case) }
    };
    let ways = Way::value_variants().iter().copied();
    ways.filter(|way| *way == Way::Ours || against.is_empty() || against.contains(way))
        .flat_map(|way| {
            Case::value_variants().iter().filter(move |case| has(way, case)).map(move |case| (way, *case))
        })
        .collect()
}

/// One build as it was measured: seconds of the wall clock, and what was used meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Until the image can be run here: without the root, which all ways share, and without smoke test and registry.
    pub local: f64,
    /// Until the registry has it: the same without what only this machine's engine needs, where a way can do without.
    pub registry: f64,
    /// The whole command, from its start to its end.
    pub whole: f64,
    /// Where the time went.
    pub times: crate::build::Times,
    /// What the machine did meanwhile.
    pub usage: Usage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_case_is_held_against_is_run_with_it() {
        let all = plan(&[], &[], false);
        assert_eq!((all.len(), all[0]), (14, (Way::Ours, Case::Cold)));
        let one = [
            (Way::Ours, Case::Cold),
            (Way::Ours, Case::Wheel),
            (Way::Plain, Case::Cold),
            (Way::Plain, Case::Wheels),
        ];
        assert_eq!(plan(&[Way::Plain], &[Case::Wheel], true), one);
        assert_eq!(plan(&[Way::Ours], &[Case::Wheel], false), one[..1]);
    }

    #[test]
    fn every_case_has_a_plain_one_that_is_run() {
        for case in Case::value_variants() {
            assert!(Way::Ours.runs(*case) && Way::Plain.runs(case.of_plain()), "{case:?}");
        }
    }
}
