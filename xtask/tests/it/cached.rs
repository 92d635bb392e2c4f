//! Steps that machines share: what one engine kept in a registry, an engine with nothing in it takes from there. The engine,
//! the registry and the root are real, the wheels are tiny.

use crate::bases::Tiny;
use crate::order::PASSED;
use crate::registry::Registry;
use crate::support::{Outcome, project};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A checkout with a private engine of its own; both go with the value.
struct Machine {
    tiny: Tiny,
    state: PathBuf,
}

impl Machine {
    fn new() -> Machine {
        let tiny = Tiny::new(100_000);
        // There is no torch to be tested.
        let smoke = format!("print('''{PASSED}''')\n");
        std::fs::write(tiny.path("templates/rootfs/opt/smoke/__main__.py"), smoke).unwrap();
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("engine-cached");
        std::fs::create_dir_all(&state).unwrap();
        // A root is the same wherever it is made of the same packages; where there is none yet, it is made.
        let roots = project().join("target/xtask/roots");
        Command::new("cp").arg("-r").args([&roots, &state]).output().unwrap();
        Machine { tiny, state }
    }

    fn xtask(&self, args: &[&str]) -> Outcome {
        let cache = self.tiny.path("cache").display().to_string();
        let env = [("XTASK_STATE", self.state.to_str().unwrap()), ("XTASK_CACHE", &cache)];
        let args = [args, &["--engine", "private"]].concat();
        self.tiny.doubles.copy.xtask_with(&args, &env)
    }

    /// The digest of the image, built by an engine that has nothing, and what the builder said.
    fn build(&self, cache: &[&str]) -> (String, String) {
        self.xtask(&["engine", "down"]).expect(0, &[]);
        let data = self.state.join("engine");
        assert!(!data.exists() || std::fs::remove_dir_all(&data).is_ok());
        let built = self.xtask(&[&["build", "--variant", "runtime"], cache].concat());
        let digest = built.expect(0, &["starting the private engine", "tagged "]).stdout.clone();
        (digest, std::fs::read_to_string(self.state.join("logs/build.log")).unwrap())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.xtask(&["engine", "prune"]);
        std::fs::remove_dir_all(&self.state).ok();
    }
}

/// Whether a step of the variant was not run.
fn is_taken(log: &str) -> bool {
    let step = log.lines().find(|line| line.contains("RUN find /files")).unwrap();
    let taken = format!("{} CACHED", step.split(' ').next().unwrap());
    log.lines().any(|line| line == taken)
}

#[test]
#[ignore = "starts an engine"]
fn the_steps_of_another_machine_are_taken_from_a_registry() {
    let registry = Registry::start();
    let cache = format!("127.0.0.1:{}/steps", registry.port);
    let machine = Machine::new();
    let (digest, made) = machine.build(&["--cache-to", &cache]);
    assert!(!is_taken(&made) && made.contains("exporting cache to registry"), "{made}");
    let (taken, read) = machine.build(&["--cache-from", &cache]);
    let from = format!("importing cache manifest from {cache}:cache-runtime-2-15");
    assert!(is_taken(&read) && read.contains(&from), "{read}");
    assert_eq!(taken, digest);
}
