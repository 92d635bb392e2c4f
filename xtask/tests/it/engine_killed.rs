//! A private engine that is killed: at its start, at rest, and under everything that a build does with it.

use crate::another::Another;
use crate::containers::until;
use crate::interruptions::survivors;
use crate::killed::files;
use crate::proxy::Proxy;
use crate::registry::Registry;
use crate::support::{Outcome, command_in, project, xtask_in};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What the engine of the project runs from; none where that is the user's own, which is not ours to kill.
fn run_folder() -> Option<PathBuf> {
    let status = xtask_in(&project(), &["engine", "status", "--json"], &[]);
    let status: Value = serde_json::from_str(&status.expect(0, &[]).stdout).unwrap();
    (status["kind"] == "private")
        .then(|| Path::new(status["socket"].as_str()?).parent().map(Path::to_owned))?
}

/// Kills those of an engine's programs whose names begin so.
fn kill(run: &Path, programs: &[&str]) {
    let told = format!("{}/", run.display());
    let is_one = |line: &str| {
        let name = line.split('\0').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        programs.iter().any(|program| name.starts_with(program)) && line.contains(&told)
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        is_one(&String::from_utf8_lossy(&line)).then(|| entry.file_name().to_str().unwrap().to_owned())
    });
    let pids: Vec<String> = pids.collect();
    assert!(!pids.is_empty(), "nothing runs from {told}");
    assert!(Command::new("kill").arg("-KILL").args(pids).status().unwrap().success());
}

/// What it is made of.
const DAEMON: &[&str] = &["dockerd"];
const ALL: &[&str] = &["dockerd", "containerd"];

#[test]
#[ignore = "needs the image"]
fn an_engine_that_was_killed_comes_up_again_with_its_images() {
    let Some(run) = run_folder() else { return };
    let xtask = |args: &[&str], said: &[&str]| {
        xtask_in(&project(), args, &[]).expect(0, said);
    };
    xtask(&["engine", "up"], &[]);
    kill(&run, DAEMON);
    xtask(&["build", "--variant", "runtime"], &["nothing changed"]);
    xtask(&["engine", "down"], &[]);
    xtask(&["plan", "--variant", "runtime"], &["skip"]);
}

/// Whatever it was doing: it is told, and the same command again makes the same image.
#[test]
#[ignore = "needs the image"]
fn an_engine_that_is_killed_under_a_build_is_named_and_started_again() {
    let Some(run) = run_folder() else { return };
    let another = Another::new();
    let digest = another.build(&["--no-cache"]).expect(0, &["tagged "]).stdout.clone();
    let (kept, engine) = (another.kept(), another.in_engine());
    let told = |outcome: &Outcome, doing: &str| {
        let what = format!(
            "dockerd.log): the private engine ended under {doing}\n  help: run the same command again"
        );
        outcome.expect(3, &["error[E_ENGINE]: engine (log: ", &what]);
        assert_eq!(outcome.stderr.matches("error[").count(), 1, "{outcome:#?}");
    };
    for (moment, doing, programs) in
        [(Another::STEP, "the build", DAEMON), ("libraries-resolve", "the smoke test", ALL)]
    {
        another.forget();
        let mut build = another.start(&["--no-cache", "--verbose"]);
        build.says(moment);
        kill(&run, programs);
        told(&build.ends(), doing);
        let again = another.build(&[]);
        assert_eq!(again.expect(0, &["starting the private engine"]).stdout, digest, "{doing}");
        assert_eq!((another.kept(), another.in_engine()), (kept.clone(), engine.clone()), "{doing}");
    }

    let registry = Registry::start();
    let proxy = Proxy::start(registry.port);
    let at = format!("127.0.0.1:{}", proxy.port);
    let push = ["--push", "--allow-dirty", "--registry", &at];
    let build = another.start(&push);
    until("a layer that is sent", 60, || (!proxy.seen("PUT", "blobs/uploads/").is_empty()).then_some(()));
    kill(&run, ALL);
    told(&build.ends(), "the push");
    let again = another.build(&push);
    assert_eq!(again.expect(0, &["starting the private engine", "pushing "]).stdout, digest);
    assert_eq!(another.in_engine(), engine);
}

/// A private engine that is killed at any moment of its start comes up, and goes without a trace.
#[test]
#[ignore = "starts an engine"]
fn an_engine_whose_start_was_killed_comes_up_and_goes_without_a_trace() {
    if run_folder().is_none() {
        return;
    }
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("engine-killed");
    let options = ["--engine", "private", "--state", state.to_str().unwrap()];
    let xtask = |args: &[&str]| xtask_in(&project(), &[args, &options].concat(), &[]);
    xtask(&["engine", "up"]).expect(0, &[]);
    xtask(&["engine", "down"]).expect(0, &[]);
    let start = Instant::now();
    xtask(&["engine", "up"]).expect(0, &[]);
    let whole = start.elapsed();
    for i in 0..6 {
        xtask(&["engine", "down"]).expect(0, &[]);
        let mut up = command_in(&project(), &[&["engine", "up"], &options[..]].concat(), &[]);
        let mut run = up.spawn().unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(i) / 5.0));
        run.kill().unwrap();
        run.wait().unwrap();
        xtask(&["engine", "up"]).expect(0, &[]);
        xtask(&["engine", "status"]).expect(0, &["running           true"]);
    }
    // What a killed `prune` leaves has another name than what an engine starts from.
    let half = state.join("engine.removing/data/containerd");
    std::fs::create_dir_all(&half).unwrap();
    xtask(&["engine", "down"]).expect(0, &[]);
    xtask(&["engine", "up"]).expect(0, &[]);
    assert!(!half.exists());
    xtask(&["engine", "prune"]).expect(0, &[]);
    assert_eq!(survivors(&state), Vec::<String>::new());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(state.to_str().unwrap()), "{mounts}");
    let left: Vec<_> =
        files(&state).into_iter().filter(|path| path.extension() != Some("lock".as_ref())).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}
