//! The smoke report as it travels with an image: attached to its digest, with its state where it can be read at once.

use crate::catalog::Catalog;
use crate::out::word;
use crate::problem::{Id, Problem};
use crate::registry::{Artifact, Descriptor, Registry, Repository};
use crate::smoke::{Record, State};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// One run of the smoke checks on an image in a registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How it ended.
    pub state: State,
    /// Whether it was given GPUs: a failure there is not made good by a run without.
    pub gpus: bool,
    /// When, as RFC 3339 in UTC.
    pub created: String,
    /// The digest that was pulled and tested.
    pub image: String,
    /// What was said of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What the checks left behind; none where they failed.
    pub record: Option<Record>,
}

/// The annotation that OCI has for times.
const CREATED: &str = "org.opencontainers.image.created";

/// The media type of a report.
pub fn artifact_type(catalog: &Catalog) -> String {
    format!("application/vnd.{}.smoke-report.v1+json", catalog.project)
}

impl Report {
    /// The report of a run that ended now.
    pub fn new(image: &str, gpus: bool, result: &Result<Record>) -> Report {
        let created = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let record = result.as_ref().ok().cloned();
        Report {
            state: record.as_ref().map_or(State::Failed, |record| record.state),
            gpus,
            created,
            image: image.to_owned(),
            failure: result.as_ref().err().map(|error| error.to_string()),
            record,
        }
    }

    /// Attaches it to the image that was tested.
    pub fn attach(
        &self,
        registry: &Registry,
        at: &Repository,
        subject: &Descriptor,
        catalog: &Catalog,
    ) -> Result<String> {
        let annotations = [
            (CREATED.to_owned(), self.created.clone()),
            (catalog.label("state"), word(self.state)),
            (catalog.label("gpus"), self.gpus.to_string()),
        ];
        let artifact = Artifact {
            artifact_type: artifact_type(catalog),
            content: serde_json::to_vec(self)?,
            annotations: annotations.into(),
        };
        registry.attach(at, subject, &artifact)
    }

    /// Every report of an image; one that tells of another image is none.
    pub fn all(registry: &Registry, at: &Repository, image: &str, catalog: &Catalog) -> Result<Vec<Report>> {
        let mut reports = Vec::new();
        for listed in registry.referrers(at, image, &artifact_type(catalog))? {
            if let Some(content) = registry.attached(at, &listed)? {
                reports.extend(serde_json::from_slice::<Report>(&content).ok());
            }
        }
        reports.retain(|report| report.image == image);
        Ok(reports)
    }

    /// How much it proves, or would have proved.
    pub(super) fn strength(&self) -> u8 {
        match self.state {
            State::GpuTested => 2,
            State::NotGpuTested => 1,
            State::Failed => u8::from(self.gpus) + 1,
        }
    }
}

/// What an image's reports prove together: the strongest that passed. A failure counts until a run of the same strength
/// passes after it.
///
/// Errors: `E_SMOKE` where there is no report or a failure stands, `E_NOT_GPU_TESTED` where a GPU is wanted.
pub fn proof<'a>(place: &str, reports: &'a [Report], gpu: bool) -> Result<&'a Report, Problem> {
    let passed = || reports.iter().filter(|it| it.state != State::Failed && it.record.is_some());
    let made_good = |failed: &Report| {
        passed().any(|it| it.created > failed.created && it.strength() >= failed.strength())
    };
    let cure =
        "run `cargo xtask smoke --registry … --variant … --attach`, with `--gpus all` where there is a GPU";
    if let Some(failed) = reports.iter().find(|it| it.state == State::Failed && !made_good(it)) {
        let said = failed.failure.as_deref().unwrap_or("it does not tell why").replace('\n', "\n    ");
        return Err(Problem::new(Id::Smoke, place, format!("its smoke test failed: {said}"), cure));
    }
    let Some(best) = passed().max_by_key(|it| (it.strength(), &it.created)) else {
        return Err(Problem::new(Id::Smoke, place, "no smoke report is attached to it", cure));
    };
    if gpu && best.state != State::GpuTested {
        let what = format!("its state is {}, and gpu-tested is required", word(best.state));
        return Err(Problem::new(Id::NotGpuTested, place, what, cure));
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(state: State, gpus: bool, created: &str) -> Report {
        let record = r#"{"found":{"python":"3","torch":"2","torchvision":null,"torchaudio":null,"cuda":null,"cudnn":null,
            "arch_list":[]},"checks":[],"counts":{"passed":1,"failed":0,"skipped":0},"state":"not-gpu-tested","summary":""}"#;
        let record = (state != State::Failed).then(|| serde_json::from_str(record).unwrap());
        Report { state, gpus, created: created.to_owned(), image: "i".to_owned(), failure: None, record }
    }

    #[test]
    fn the_strongest_run_counts_and_a_failure_until_it_is_made_good() {
        use State::{Failed, GpuTested, NotGpuTested};
        let (gpu, cpu) = (report(GpuTested, true, "2"), report(NotGpuTested, false, "3"));
        let failed = |gpus, created| report(Failed, gpus, created);
        let cases = [
            (vec![], false, Err(Id::Smoke)),
            (vec![cpu.clone()], false, Ok(NotGpuTested)),
            (vec![cpu.clone()], true, Err(Id::NotGpuTested)),
            (vec![gpu.clone(), cpu.clone()], true, Ok(GpuTested)),
            (vec![failed(false, "1"), cpu.clone()], false, Ok(NotGpuTested)),
            (vec![failed(false, "4"), cpu.clone()], false, Err(Id::Smoke)),
            (vec![failed(true, "1"), cpu.clone()], false, Err(Id::Smoke)),
            (vec![failed(true, "1"), gpu.clone()], true, Ok(GpuTested)),
            (vec![failed(true, "3"), gpu, cpu], true, Err(Id::Smoke)),
        ];
        for (reports, gpu, expected) in cases {
            let proof = proof("p", &reports, gpu).map(|it| it.state).map_err(|problem| problem.id);
            assert_eq!(proof, expected, "{reports:?}");
        }
    }

    #[test]
    fn a_failed_run_makes_a_report_too() {
        let report = Report::new("sha256:0", true, &Err(anyhow::anyhow!("because")));
        assert_eq!((report.state, report.failure.as_deref()), (State::Failed, Some("because")));
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
