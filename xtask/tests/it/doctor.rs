//! `doctor` on recorded hosts: a folder of `tests/doctor` is one, and its `expect.json` says what must come out.

use crate::support::{Copy, Outcome, project};
use serde_json::Value;
use std::path::PathBuf;

struct Case {
    folder: PathBuf,
    expect: Value,
}

impl Case {
    fn all() -> Vec<Case> {
        let folders = std::fs::read_dir(project().join("xtask/tests/doctor")).unwrap();
        let case = |folder: PathBuf| {
            let text = std::fs::read_to_string(folder.join("expect.json")).unwrap();
            Case { folder, expect: serde_json::from_str(&text).unwrap() }
        };
        let mut all: Vec<Case> = folders.map(|folder| case(folder.unwrap().path())).collect();
        all.sort_by(|a, b| a.folder.cmp(&b.folder));
        all
    }

    fn name(&self) -> &str {
        self.folder.file_name().unwrap().to_str().unwrap()
    }

    fn list(&self, field: &str) -> Vec<&str> {
        self.expect[field].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
    }

    fn run(&self, copy: &Copy, options: &[&str]) -> Outcome {
        let folder = self.folder.to_str().unwrap();
        let args = [&["doctor", "--fixtures", folder], &self.list("args")[..], options].concat();
        copy.xtask(&args)
    }

    /// Everything in which the answer is another than the expected one.
    fn differences(&self, copy: &Copy) -> Vec<String> {
        let (json, text) = (self.run(copy, &["--json"]), self.run(copy, &[]));
        let report: Value =
            serde_json::from_str(&json.stdout).unwrap_or_else(|_| panic!("{}: {json:#?}", self.name()));
        let mut wrong = Vec::new();
        let mut same = |what: &str, got: &Value, want: &Value| {
            if got != want {
                wrong.push(format!("{}: {what} is {got}, expected {want}", self.name()));
            }
        };
        same("verdict", &report["verdict"], &self.expect["verdict"]);
        same("exit", &report["exit"], &self.expect["exit"]);
        for outcome in [&json, &text] {
            same("exit code", &Value::from(outcome.code.unwrap()), &self.expect["exit"]);
        }
        for (name, value) in self.expect["evidence"].as_object().unwrap() {
            same(name, &report["evidence"][name], value);
            let shown = text.stdout.contains(value.as_str().unwrap());
            same(&format!("`{value}` in words"), &shown.into(), &true.into());
        }
        for (release, runs) in self.expect["ours"].as_object().into_iter().flatten() {
            let ours =
                report["ours"].as_array().unwrap().iter().find(|it| it["release"] == *release).unwrap();
            same(release, &ours["lacks"].as_array().unwrap().is_empty().into(), runs);
        }
        for part in self.list("says") {
            same(&format!("`{part}`"), &text.stdout.contains(part).into(), &true.into());
        }
        for part in self.list("never") {
            same(&format!("`{part}`"), &text.stdout.contains(part).into(), &false.into());
        }
        if !wrong.is_empty() {
            wrong.push(text.stdout);
        }
        wrong
    }
}

#[test]
fn every_recorded_host_gets_its_verdict_evidence_and_cure() {
    let copy = Copy::new();
    let wrong: Vec<String> = Case::all().iter().flat_map(|case| case.differences(&copy)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The README has the table of all verdicts: a test beside the code sees to that.
#[test]
fn every_verdict_of_the_readme_has_a_recorded_host() {
    let readme = std::fs::read_to_string(project().join("README.md")).unwrap();
    let table = readme.split("| verdict | exit | meaning |").nth(1).unwrap().split("\n\n").next().unwrap();
    let ids: Vec<&str> = table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    let verdicts: Vec<String> =
        Case::all().iter().map(|case| case.expect["verdict"].as_str().unwrap().to_owned()).collect();
    assert!(ids.len() > 20, "{ids:?}");
    for id in ids {
        assert!(verdicts.iter().any(|verdict| verdict == id), "no folder of tests/doctor comes to {id}");
    }
}

#[test]
fn advice_is_given_once_and_the_first_check_that_fails_explains_the_rest() {
    let copy = Copy::new();
    for case in Case::all() {
        let report: Value = serde_json::from_str(&case.run(&copy, &["--json"]).stdout).unwrap();
        let bad = report["checks"].as_array().unwrap().iter().filter(|check| check["state"] == "bad").count();
        let also = report["also"].as_array().unwrap().len();
        let main = usize::from(report["verdict"] != "OK");
        assert_eq!(bad, also + main, "{}", case.name());
        assert_eq!(also, 0, "{}: a symptom is told beside the cause: {}", case.name(), report["also"]);
    }
}

#[test]
fn a_dry_run_names_the_probes_and_starts_none() {
    let outcome = Copy::new().xtask(&["doctor", "--dry-run", "--engine", "docker", "--image", "it:1"]);
    outcome.expect(
        0,
        &["nvidia-smi --query-gpu=", "docker info", "docker image inspect it:1", "nvidia-ctk --version"],
    );
}

#[test]
fn this_machine_gets_a_verdict_that_is_true_of_it() {
    let empty = Copy::new();
    let outcome = empty.xtask(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    // Nothing is on PATH, so there is no engine; what else is missing is this machine's own affair.
    let engine = &report["checks"][0];
    assert_eq!(
        (engine["check"].as_str(), engine["state"].as_str()),
        (Some("engine"), Some("bad")),
        "{outcome:#?}"
    );
    assert!(outcome.code == Some(1) || outcome.code == Some(3), "{outcome:#?}");
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let copy = Copy::new();
    copy.xtask(&["doctor", "--fixtures", "nowhere"]).expect(2, &["error[E_SCHEMA]: --fixtures", "nowhere"]);
    copy.xtask(&["doctor", "--variant", "runtme"]).expect(2, &["E_UNKNOWN_NAME", "`runtime`"]);
    let good = project().join("xtask/tests/doctor/OK");
    let ask = |args: &[&str]| copy.xtask(&[&["doctor", "--fixtures", good.to_str().unwrap()], args].concat());
    ask(&["--container", "gone"]).expect(2, &["error[E_UNKNOWN_NAME]: --container", "`gone`"]);
    ask(&["--image", "gone:1"]).expect(3, &["error[E_BASE_GONE]: --image gone:1"]);
}
