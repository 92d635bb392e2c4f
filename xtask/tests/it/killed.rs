//! A run that is killed leaves nothing that the next one does not take away.

use crate::interruptions::{BUILD, Started, survivors};
use crate::order::Doubles;
use crate::support::project;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Every file below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut left = vec![folder.to_owned()];
    while let Some(at) = left.pop() {
        for entry in std::fs::read_dir(at).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => left.push(entry.path()),
                false => drop(found.insert(entry.path().strip_prefix(folder).unwrap().to_owned())),
            }
        }
    }
    found
}

/// An engine that takes a moment for each phase.
fn slow() -> Doubles {
    Doubles::new().say("slow", "0.05")
}

#[test]
fn the_next_run_after_a_kill_is_as_if_nothing_had_been() {
    let reference = slow();
    let start = Instant::now();
    let digest = reference.build().expect(0, &[]).stdout.clone();
    let whole = start.elapsed();
    let state = files(&reference.copy.path("target/xtask"));
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let points = |thread: u32| (0..10).map(move |i| (thread * 10 + i) * 7919 + seed);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (state, digest) = (&state, &digest);
            scope.spawn(move || {
                for point in points(thread) {
                    let after = whole.mul_f64(f64::from(point % 1000) / 1000.0);
                    killed(after, state, digest);
                }
            });
        }
    });
}

fn killed(after: Duration, state: &BTreeSet<PathBuf>, digest: &str) {
    let doubles = slow();
    let run = Started::new(&doubles, BUILD, &[]);
    std::thread::sleep(after);
    let ended = run.ends("KILL");
    let again = doubles.build();
    let context = format!("killed after {after:?}: {ended:#?} {again:#?}");
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), digest), "{context}");
    assert_eq!(survivors(doubles.copy.dir.path()), Vec::<String>::new(), "{context}");
    let left = files(&doubles.copy.path("target/xtask"));
    let differing: Vec<_> = left.symmetric_difference(state).collect();
    assert!(differing.is_empty(), "{differing:?} {context}");
}

#[test]
fn what_a_killed_smoke_test_left_in_the_engine_goes_and_nothing_else() {
    let containers = "pytorch-cuda:candidate-2.15-devel 0a\npytorch-cuda:2.15-devel 0b\nother:candidate-1 0c";
    let images = "pytorch-cuda:candidate-2.15-devel\npytorch-cuda:2.15-devel\nother:candidate-1";
    let doubles = Doubles::new().say("containers", containers).say("candidates", images);
    let run = Started::at("smoke", &doubles, BUILD, &[]);
    let pid = run.id();
    run.ends("KILL");
    assert_ne!(survivors(doubles.copy.dir.path()), Vec::<String>::new());
    let told = format!("a run was killed here (process {pid}: cargo xtask build --variant runtime)");
    doubles.build().expect(0, &[&told]);
    assert_eq!(survivors(doubles.copy.dir.path()), Vec::<String>::new());
    let calls = doubles.all_calls();
    let removed: Vec<&str> = calls.lines().filter(|line| line.contains(" rm ")).collect();
    let own = "image rm pytorch-cuda:candidate-2.15-runtime";
    assert_eq!(removed, ["container rm --force 0a", "image rm pytorch-cuda:candidate-2.15-devel", own]);
    // Once is enough.
    assert!(!doubles.build().stderr.contains("was killed"));
}

/// A private engine that is killed at any moment of its start comes up, and goes without a trace.
#[test]
#[ignore = "starts an engine"]
fn an_engine_whose_start_was_killed_comes_up_and_goes_without_a_trace() {
    let status = crate::support::xtask_in(&project(), &["engine", "status", "--json"], &[]);
    if !status.stdout.contains("\"private\"") {
        return;
    }
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("engine-killed");
    let options = ["--engine", "private", "--state", state.to_str().unwrap()];
    let xtask = |args: &[&str]| crate::support::xtask_in(&project(), &[args, &options].concat(), &[]);
    xtask(&["engine", "up"]).expect(0, &[]);
    xtask(&["engine", "down"]).expect(0, &[]);
    let start = Instant::now();
    xtask(&["engine", "up"]).expect(0, &[]);
    let whole = start.elapsed();
    for i in 0..6 {
        xtask(&["engine", "down"]).expect(0, &[]);
        let mut up = crate::support::command_in(&project(), &[&["engine", "up"], &options[..]].concat(), &[]);
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
