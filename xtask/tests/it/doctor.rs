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

/// What an expression over the images' `doctor` is with this machine's own Python; `argument` is `it` in there.
fn python(expression: &str, argument: &Value) -> Value {
    let script = format!(
        "import sys, json; sys.path.insert(0, sys.argv[1]); import doctor; it = json.loads(sys.argv[2]); \
         print(json.dumps({expression}))"
    );
    let smoke = project().join("templates/rootfs/opt/smoke");
    let mut python = std::process::Command::new("python3");
    let outcome = python.args(["-B", "-c", &script]).arg(smoke).arg(argument.to_string()).output().unwrap();
    serde_json::from_str(&Outcome::of(outcome).expect(0, &[]).stdout).unwrap()
}

#[test]
fn code_for_a_gpu_is_missing_in_either_direction() {
    let built = ["sm_75", "sm_86", "sm_90a", "sm_100"];
    for (capability, verdict) in [
        ("6.1", "GPU_TOO_OLD_FOR_IMAGE"),
        ("7.0", "GPU_TOO_OLD_FOR_IMAGE"),
        ("12.0", "GPU_TOO_NEW_FOR_IMAGE"),
    ] {
        let given = serde_json::json!({"capability": capability, "built": built});
        assert_eq!(python("doctor.without_code(**it)", &given), verdict, "{capability}");
    }
}

#[test]
fn a_container_names_the_cause_by_the_same_ids() {
    let readme = std::fs::read_to_string(project().join("README.md")).unwrap();
    let folders = std::fs::read_dir(project().join("xtask/tests/doctor-inside")).unwrap();
    for folder in folders.map(|folder| folder.unwrap().path()) {
        let case: Value =
            serde_json::from_str(&std::fs::read_to_string(folder.join("case.json")).unwrap()).unwrap();
        let mut given = case["given"].clone();
        given["root"] = folder.to_str().unwrap().into();
        let finding = python("doctor.diagnose(**it)", &given);
        let place = folder.display();
        assert_eq!(finding["verdict"], case["verdict"], "{place}: {finding:#}");
        if let Some(id) = finding["verdict"].as_str() {
            assert!(readme.contains(&format!("| `{id}` | 1 |")), "{place}: `{id}` is not in the README");
        }
        for (name, value) in case["evidence"].as_object().unwrap() {
            assert_eq!(finding["evidence"][name], *value, "{place}: {name}");
            assert!(
                finding["cause"].as_str().unwrap().contains(value.as_str().unwrap()),
                "{place}: {finding:#}"
            );
        }
        let words = format!("{} {}", finding["cause"], finding["cure"]);
        let has = |part: &Value| words.contains(part.as_str().unwrap());
        assert!(case["says"].as_array().unwrap().iter().all(has), "{place}: {words}");
        assert!(!case["never"].as_array().unwrap().iter().any(has), "{place}: {words}");
    }
}

/// A real container with something in the place of a GPU's device, and no driver behind it.
#[test]
#[ignore = "needs the built images"]
fn smoke_prints_the_verdict_where_a_gpu_was_asked_for() {
    let smoke = ["python", "/opt/smoke", "--only", "gpu-visible"];
    let device = ["--device", "/dev/null:/dev/nvidiactl"];
    let alone = crate::containers::run(&device, "runtime", &smoke);
    alone.expect(0, &["skip gpu-visible", "TOOLKIT_NOT_CONFIGURED: the GPU's devices are here"]);
    let record: Value = serde_json::from_str(&alone.stdout).unwrap();
    let check = record["checks"].as_array().unwrap().iter().find(|it| it["name"] == "gpu-visible").unwrap();
    assert_eq!(check["detail"]["doctor"]["verdict"], "TOOLKIT_NOT_CONFIGURED");
    let options = [&device[..], &["--env", "NVIDIA_DRIVER_CAPABILITIES=utility"]].concat();
    crate::containers::run(&options, "runtime", &smoke).expect(0, &["CAPABILITY_COMPUTE_MISSING"]);
    let required = [&smoke[..], &["--require-gpu"]].concat();
    crate::containers::run(&[], "runtime", &required).expect(1, &["FAIL gpu-visible", "no GPU is attached"]);
    let not_asked = crate::containers::run(&[], "runtime", &smoke);
    not_asked.expect(0, &["no GPU is visible here"]);
    assert!(!not_asked.stderr.contains("TOOLKIT_NOT_CONFIGURED"), "{not_asked:#?}");
}
