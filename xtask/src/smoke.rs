//! The smoke test of an image: run its own checks in a closed container, and judge the record they leave.

use crate::engine::Engine;
use crate::problem::{Id, Problem, Refusal, refuse};
use crate::resolve::Resolved;
use crate::runner::{Step, Stream, tail};
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// What one run of the smoke checks left behind: `/opt/smoke` writes it, nothing else does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What was read out of the image.
    pub found: Found,
    /// Every check with its outcome.
    pub checks: Vec<Check>,
    /// The outcomes counted.
    pub counts: Counts,
    /// Whether a GPU took part.
    pub state: State,
    /// The result in plain words.
    pub summary: String,
    /// The rest of the record, kept as it is.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// What was read out of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Version of the interpreter: `3.13.5`.
    pub python: String,
    /// Version of torch with its local suffix: `2.15.0+cu132`.
    pub torch: String,
    /// Version of torchvision, which may have a suffix too.
    pub torchvision: Option<String>,
    /// Version of torchaudio.
    pub torchaudio: Option<String>,
    /// `torch.version.cuda`: `13.2`; none in a CPU build.
    pub cuda: Option<String>,
    /// Version of cuDNN: `9.26.0`.
    pub cudnn: Option<String>,
    /// GPU architectures that torch was compiled for: `sm_90`.
    pub arch_list: Vec<String>,
    /// What is told beside these.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

impl Record {
    /// Packages with their bytes, the heaviest first, as the image tells them.
    pub fn heaviest(&self) -> Vec<(String, u64)> {
        let told = self.found.rest.get("heaviest").and_then(|it| it.as_array());
        let one = |it: &serde_json::Value| Some((it[0].as_str()?.to_owned(), it[1].as_u64()?));
        told.into_iter().flatten().filter_map(one).collect()
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// Why it failed or was skipped.
    #[serde(default)]
    pub reason: Option<String>,
    /// What is told beside these.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Status {
    Passed,
    Failed,
    Skipped,
}

/// Outcomes counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Counts {
    pub passed: u32,
    pub failed: u32,
    pub skipped: u32,
}

/// Whether a GPU took part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The CUDA checks ran on a GPU and passed.
    GpuTested,
    /// No GPU was there: the CUDA checks did not run.
    NotGpuTested,
    /// A check failed.
    Failed,
}

/// What to test and with what.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The image.
    pub image: &'a str,
    /// What it was planned to hold; an image of unknown origin has no plan.
    pub plan: Option<&'a Resolved>,
    /// GPUs to attach, as docker takes them.
    pub gpus: Option<&'a str>,
    /// Fail where no GPU is usable.
    pub require_gpu: bool,
}

impl Request<'_> {
    /// The command that runs the checks: no network, no privilege, nothing writable but a temporary folder.
    pub fn step(&self, engine: &Engine) -> Step {
        let mut step = engine
            .docker("smoke test", ["run", "--rm", "--network", "none", "--read-only"])
            .args(["--tmpfs", "/tmp:rw,exec,mode=1777", "--workdir", "/tmp", "--shm-size", "1g"])
            .args(["--cap-drop", "ALL"])
            .args(["--security-opt", "no-new-privileges"]);
        if let Some(gpus) = self.gpus {
            step = step.args(["--gpus", gpus]);
        }
        step = step.args(["--env", &format!("SMOKE_IMAGE={}", self.image)]);
        step.args([self.image, "python", "/opt/smoke"])
    }

    /// Runs the checks; `each` is given every line that they print for people.
    ///
    /// Errors: `E_SMOKE` when a check failed, when the record is missing or does not add up, or when the process ended
    /// otherwise than its record says; `E_IMAGE_DIFFERS` when the image holds something else than was planned;
    /// `E_GPU_NOT_ATTACHED` when the engine could not attach the GPU.
    pub fn run(&self, engine: &Engine, mut each: impl FnMut(&str)) -> Result<Record> {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let status = self.step(engine).stream(|stream, line| match stream {
            Stream::Out => stdout.push_str(line),
            Stream::Err => {
                each(line);
                stderr.push_str(line);
                stderr.push('\n');
            }
        })?;
        if self.gpus.is_some() && stderr.contains("could not select device driver") {
            return refuse(
                Id::GpuNotAttached,
                self.image,
                "the engine has no driver for GPUs",
                "install and configure the NVIDIA Container Toolkit, or leave out --gpus",
            );
        }
        let record = judge(self.image, &stdout, status.code(), &stderr)?;
        if let Some(plan) = self.plan {
            crate::problem::all_or_nothing(differences(self.image, &record.found, plan))?;
        }
        if self.require_gpu && record.state != State::GpuTested {
            return refuse(
                Id::NotGpuTested,
                self.image,
                &record.summary,
                "run it on a machine with a GPU and give `--gpus all`, or leave out --require-gpu",
            );
        }
        Ok(record)
    }
}

/// The verdict, from the record and the process's exit status together.
pub fn judge(image: &str, stdout: &str, code: Option<i32>, stderr: &str) -> Result<Record> {
    let failed = |what: String| {
        let cure = format!("run it yourself: docker run --rm --entrypoint '' {image} python /opt/smoke");
        Err(Refusal::from(Problem::new(Id::Smoke, image, what, cure)).into())
    };
    let ended = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit status {code}"));
    let record: Record = match serde_json::from_str(stdout) {
        Ok(record) => record,
        Err(_) => {
            let said = tail(stderr.trim_end(), 8).replace('\n', "\n    ");
            return failed(format!("the checks left no record and ended with {ended}\n    {said}"));
        }
    };
    let of = |status| record.checks.iter().filter(|check| check.status == status).count();
    let counts = [Status::Passed, Status::Failed, Status::Skipped].map(of);
    let told = [record.counts.passed, record.counts.failed, record.counts.skipped].map(|n| n as usize);
    if counts != told || counts[0] == 0 {
        return failed(format!("the record does not add up: {told:?} told, {counts:?} there"));
    }
    if counts[1] > 0 || record.state == State::Failed {
        let failures = record.checks.iter().filter(|check| check.status == Status::Failed);
        let lines: Vec<String> = failures
            .map(|check| format!("{}: {}", check.name, check.reason.as_deref().unwrap_or("no reason told")))
            .collect();
        return failed(format!("{}\n    {}", record.summary, lines.join("\n    ").replace('\n', "\n    ")));
    }
    if code != Some(0) {
        return failed(format!("{}, but the process ended with {ended}", record.summary));
    }
    Ok(record)
}

/// Every field in which the image is something else than was planned.
pub fn differences(image: &str, found: &Found, plan: &Resolved) -> Vec<Problem> {
    let public = |version: &str| version.split('+').next().unwrap_or_default().to_owned();
    let minor = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    let suffix = found.torch.split_once('+').map(|(_, suffix)| suffix.to_owned());
    let optional = |version: &Option<String>| version.as_deref().map(public);
    let pairs = [
        ("python", Some(minor(&found.python)), Some(plan.python.clone())),
        ("torch", Some(public(&found.torch)), Some(plan.torch.clone())),
        (
            "CUDA build of torch",
            suffix.clone().or(Some(plan.cuda_build.clone())),
            Some(plan.cuda_build.clone()),
        ),
        ("torchvision", optional(&found.torchvision), Some(plan.torchvision.clone())),
        ("torchaudio", optional(&found.torchaudio), plan.torchaudio.clone()),
        ("CUDA", found.cuda.clone(), Some(plan.cuda.clone())),
        ("cuDNN", found.cudnn.clone(), Some(plan.cudnn_at_run_time())),
    ];
    pairs
        .into_iter()
        .filter(|(_, found, planned)| found != planned)
        .map(|(field, found, planned)| {
            let text = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
            Problem::new(
                Id::ImageDiffers,
                image,
                format!("{field} is {} in the image, {} was planned", text(found), text(planned)),
                "no tag was given; look for an index that serves other wheels than the lock's",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(checks: &str, counts: &str, state: &str) -> String {
        format!(
            r#"{{"schema":1,"found":{{"python":"3.13.5","torch":"2.15.0+cu132","torchvision":"0.29.2+cu132",
            "torchaudio":null,"cuda":"13.2","cudnn":"9.26.0","arch_list":["sm_90"]}},
            "checks":[{checks}],"counts":{counts},"state":"{state}","summary":"s"}}"#
        )
    }

    const PASSED: &str = r#"{"name":"a","status":"passed","seconds":0.1}"#;
    const FAILED: &str = r#"{"name":"b","status":"failed","reason":"because"}"#;
    const ONE: &str = r#"{"passed":1,"failed":0,"skipped":0}"#;

    #[test]
    fn nothing_passes_by_doing_nothing() {
        let empty = record("", r#"{"passed":0,"failed":0,"skipped":0}"#, "not-gpu-tested");
        let cases = [
            (String::new(), Some(0), "no record"),
            ("all fine".to_owned(), Some(0), "no record"),
            (empty, Some(0), "does not add up"),
            (record("", ONE, "not-gpu-tested"), Some(0), "does not add up"),
            (record(PASSED, ONE, "not-gpu-tested"), Some(1), "exit status 1"),
            (record(PASSED, ONE, "not-gpu-tested"), None, "a signal"),
            (record(FAILED, r#"{"passed":0,"failed":1,"skipped":0}"#, "failed"), Some(1), "does not add up"),
            (
                record(&format!("{PASSED},{FAILED}"), r#"{"passed":1,"failed":1,"skipped":0}"#, "failed"),
                Some(1),
                "b: because",
            ),
        ];
        for (stdout, code, expected) in cases {
            let error = judge("i", &stdout, code, "").unwrap_err().to_string();
            assert!(error.contains("E_SMOKE") && error.contains(expected), "{expected}: {error}");
        }
        let good = judge("i", &record(PASSED, ONE, "not-gpu-tested"), Some(0), "").unwrap();
        assert_eq!(good.state, State::NotGpuTested);
    }
}
