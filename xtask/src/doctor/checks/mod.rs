//! The checks, in the order of cause and effect. Each judges facts and starts nothing; what rests on something that is
//! not in order is not checked, so that nobody is told of a symptom.

mod attach;
mod container;
mod host;
mod image;

use super::{Case, Check, State};
use crate::explain::Ours;

/// A check with its name, for where it is not made.
type Named = (&'static str, fn(&Case) -> Check);

/// Every check.
pub fn all(case: &Case) -> Vec<Check> {
    let engine = host::engine(case);
    let driver = host::driver(case);
    let works = driver.state == State::Good;
    let rests_on_driver: [Named; 2] = [("unified memory", host::uvm), ("MIG", host::mig)];
    let attached: [Named; 3] =
        [("toolkit", attach::toolkit), ("configuration", attach::configuration), ("CDI", attach::cdi)];
    let of_image: [Named; 4] = [
        ("start condition", image::requirement),
        ("GPU code", image::architecture),
        ("libcuda", image::shadow),
        ("capabilities", image::capability),
    ];
    let answers = engine.state == State::Good;
    let mut checks = vec![engine, driver];
    let gate = |(name, check): Named, open: bool, why: &str| match open {
        true => check(case),
        false => Check::skipped(name, why),
    };
    checks.extend(rests_on_driver.map(|it| gate(it, works, "the driver does not work")));
    let why = if answers { "the driver does not work" } else { "no engine that could attach a GPU answers" };
    checks.extend(attached.map(|it| gate(it, works && answers, why)));
    let named = case.facts.image.is_some();
    let why = if named { "the driver does not work" } else { "no image was named" };
    checks.extend(of_image.map(|it| gate(it, works && named, why)));
    checks.extend([container::gpu(case), container::shm(case), container::disk(case)]);
    checks
}

impl Case<'_> {
    /// Which of ours to take instead, in a sentence.
    fn instead(&self) -> String {
        let runs: Vec<&Ours> = self.ours.iter().filter(|it| it.lacks.is_empty()).collect();
        let one = |it: &&Ours| {
            let cuda = self.compat.version_of(&it.cuda_build).unwrap_or(&it.cuda_build);
            format!("{} (CUDA {cuda})", it.release)
        };
        let own = runs.iter().find(|it| self.needs_no_newer_cuda(it));
        match (runs.is_empty(), own) {
            (true, _) => "none of our releases runs on this driver and GPU".to_owned(),
            (false, Some(own)) if runs.len() > 1 => format!(
                "take one of ours that runs here: {}; the driver itself knows the CUDA of {}",
                runs.iter().map(one).collect::<Vec<_>>().join(", "),
                one(own)
            ),
            (false, _) => format!(
                "take one of ours that runs here: {}",
                runs.iter().map(one).collect::<Vec<_>>().join(", ")
            ),
        }
    }

    /// Whether the driver runs the release without minor version compatibility.
    fn needs_no_newer_cuda(&self, it: &Ours) -> bool {
        let parse = |text: &str| crate::compat::Version::parse(text);
        let own = self.facts.driver.cuda.as_deref().and_then(parse);
        let cuda = self.compat.version_of(&it.cuda_build).and_then(parse);
        own.zip(cuda).is_some_and(|(own, cuda)| cuda <= own)
    }
}
