//! Two runs at once, and a run that is asked to stop: with doubles that take their time, in every phase.

use crate::order::Doubles;
use crate::support::Outcome;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const BUILD: &[&str] = &["build", "--variant", "runtime"];

/// A run that is under way.
pub struct Started(Child);

impl Started {
    pub fn new(doubles: &Doubles, args: &[&str], env: &[(&str, &str)]) -> Started {
        let mut command = doubles.command(args, env);
        Started(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// A run that has come to a phase which does not end.
    pub fn at(phase: &str, doubles: &Doubles, args: &[&str], env: &[(&str, &str)]) -> Started {
        let file = |name: &str| doubles.copy.path("double").join(name);
        std::fs::write(file(&format!("{phase}.hangs")), "").unwrap();
        std::fs::remove_file(file("reached")).ok();
        let started = Started::new(doubles, args, env);
        let start = Instant::now();
        while !file("reached").exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "{phase}: {:?}", started.ends("KILL"));
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::remove_file(file(&format!("{phase}.hangs"))).unwrap();
        started
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal, and waits for the end.
    pub fn ends(self, signal: &str) -> Outcome {
        let kill = Command::new("sh").args(["-c", &format!("kill -s {signal} {}", self.0.id())]).status();
        assert!(kill.unwrap().success());
        Outcome::of(self.0.wait_with_output().unwrap())
    }
}

/// Processes of whatever was started with a path below a folder in its words or its environment.
pub fn survivors(folder: &Path) -> Vec<String> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let names = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let line = read("cmdline");
        let is_there = !line.is_empty() && (names(&line) || names(&read("environ")));
        is_there.then(|| format!("{:?} {}", entry.file_name(), String::from_utf8_lossy(&line)))
    });
    processes.collect()
}

#[test]
fn a_second_run_is_refused_and_told_by_whom_and_readers_are_not() {
    let doubles = Doubles::new();
    let first = Started::at("bake", &doubles, BUILD, &[]);
    let holder = format!("process {}: cargo xtask build --variant runtime", first.id());
    for args in [BUILD, &["render"], &["engine", "down"], &["engine", "prune"]] {
        let refused = doubles.run(args, &[]);
        refused.expect(3, &["error[E_LOCKED]: ", "run.lock: it is held by ", &holder, "help: wait"]);
    }
    for args in [&["list"][..], &["check"], &["plan", "--all"], &["build", "--all", "--dry-run"]] {
        doubles.run(args, &[]).expect(0, &[]);
    }
    first.ends("TERM").expect(143, &[]);
    doubles.build().expect(0, &[]);
}

/// Ends a run in a phase, and runs it to its end.
fn interrupted(phase: &str, signal: (&str, i32), args: &[&str], stubborn: bool) {
    let doubles = Doubles::new();
    let path = doubles.copy.path("programs");
    std::fs::create_dir(&path).unwrap();
    // Whatever of uv is used first takes its time.
    let uv = format!("#!/bin/sh\nexec {} $DOUBLE uv\n", crate::support::project().join(TAKES_TIME).display());
    std::fs::write(path.join("uv"), uv).unwrap();
    Command::new("chmod").arg("+x").arg(path.join("uv")).status().unwrap();
    let doubles = if stubborn { doubles.say("stubborn", "") } else { doubles };
    let ours = crate::support::project().join("xtask/tests/it/doubles");
    let path = format!("{}:{}:{}", path.display(), ours.display(), std::env::var("PATH").unwrap());
    let run = Started::at(phase, &doubles, args, &[("PATH", &path)]);
    let start = Instant::now();
    let outcome = run.ends(signal.0);
    assert!(start.elapsed() < Duration::from_secs(10), "{phase}: {:?}", start.elapsed());
    let said = format!("interrupted by SIG{}: what ran was ended, finished steps are kept", signal.0);
    outcome.expect(128 + signal.1, &[&said]);
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.matches("error").count()), ("", 0), "{outcome:#?}");
    assert_eq!(survivors(doubles.copy.dir.path()), Vec::<String>::new(), "{phase}");
    let state = doubles.copy.path("target/xtask");
    for folder in ["secrets", "roots"] {
        let left = std::fs::read_dir(state.join(folder)).into_iter().flatten().flatten();
        let work =
            left.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with("work-"));
        assert_eq!(work.count(), 0, "{phase}: {folder}");
    }
    let again = doubles.build();
    assert_eq!(again.expect(0, &[]).stdout, "sha256:1\n");
    assert!(!again.stderr.contains("was killed"), "{again:#?}");
}

const TAKES_TIME: &str = "xtask/tests/it/doubles/takes-time";

#[test]
fn a_signal_ends_every_phase_and_the_next_run_goes_on() {
    let update = &["lock", "--update", "--release", "2.15"][..];
    for (phase, args) in [("uv", update), ("root", BUILD), ("bake", BUILD), ("smoke", BUILD)] {
        interrupted(phase, ("TERM", 15), args, false);
    }
    interrupted("bake", ("INT", 2), BUILD, false);
    interrupted("root", ("HUP", 1), BUILD, false);
}

#[test]
fn what_does_not_hear_is_made_to_end() {
    interrupted("bake", ("TERM", 15), BUILD, true);
    interrupted("smoke", ("INT", 2), BUILD, true);
}

#[test]
fn a_smoke_test_that_is_stopped_takes_its_candidate_along() {
    let doubles = Doubles::new();
    let run = Started::at("smoke", &doubles, BUILD, &[]);
    run.ends("TERM").expect(143, &[]);
    let calls = doubles.all_calls();
    assert!(calls.contains("image rm pytorch-cuda:candidate-2.15-runtime"), "{calls}");
    assert!(!calls.contains("image tag"), "{calls}");
}
