//! A run that is killed leaves nothing that the next one does not take away.

use crate::another::Another;
use crate::interruptions::{BUILD, Started, survivors};
use crate::order::Doubles;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Every file below a folder.
pub fn files(folder: &Path) -> BTreeSet<PathBuf> {
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

/// At how many moments a real build is killed.
const MOMENTS: u32 = 6;

/// The whole of it for real. The moments are spread over the build, each somewhere in its own part; `XTASK_TEST_SEED` meets
/// those of another run again.
#[test]
#[ignore = "needs the image"]
fn a_real_build_that_was_killed_is_made_good_by_the_next_one() {
    let another = Another::new();
    let start = Instant::now();
    let digest = another.build(&["--no-cache"]).expect(0, &["tagged "]).stdout.clone();
    let whole = start.elapsed();
    let (kept, engine) = (another.kept(), another.in_engine());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = std::env::var("XTASK_TEST_SEED").map_or(now, |seed| seed.parse().unwrap());
    let mut random = fastrand::Rng::with_seed(seed);
    let mut met = 0;
    for moment in 0..MOMENTS {
        another.forget();
        let after = whole.mul_f64((f64::from(moment) + random.f64()) / f64::from(MOMENTS));
        let mut run = another.command(&["--no-cache", "--quiet"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        run.kill().unwrap();
        run.wait().unwrap();
        let again = another.build(&[]);
        let context = format!("XTASK_TEST_SEED={seed}: killed after {after:?} of {whole:?}: {again:#?}");
        met += u32::from(again.stderr.contains("a run was killed here"));
        assert_eq!((again.code, again.stdout.as_str()), (Some(0), digest.as_str()), "{context}");
        assert_eq!(survivors(another.folder()), Vec::<String>::new(), "{context}");
        assert_eq!(another.kept(), kept, "{context}");
        assert_eq!(another.in_engine(), engine, "{context}");
    }
    assert!(met > MOMENTS / 2, "XTASK_TEST_SEED={seed}: only {met} builds were not at their end yet");
}
