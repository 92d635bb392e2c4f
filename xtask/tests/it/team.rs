//! `examples/team`: what a team adds to an image, on a real image.

use crate::containers::{docker, image};
use crate::support::{Outcome, docker_environment, project};
use std::path::Path;
use std::process::Command;

/// One of the example's programs in a copy of its folder, with docker's client of the engine that is used.
fn run(folder: &Path, program: &str) -> Outcome {
    let variables = format!("IMAGE={} TAG=xtask-tests/team:1 NETWORK=host", image("runtime"));
    let line = format!("export {} {variables}; exec ./{program}", docker_environment(&project(), &[]));
    Outcome::of(Command::new("sh").args(["-c", &line]).current_dir(folder).output().unwrap())
}

fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = project().join("examples/team/.");
    assert!(Command::new("cp").arg("-r").arg(from).arg(folder.path()).status().unwrap().success());
    folder
}

#[test]
#[ignore = "needs the image"]
fn a_team_adds_packages_and_every_check_still_passes() {
    let folder = copy();
    run(folder.path(), "build").expect(0, &[]);
    let record = std::fs::read_to_string(folder.path().join("smoke.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!((&record["counts"]["failed"], &record["state"]), (&0.into(), &"not-gpu-tested".into()));
    let hello = docker(&["run", "--rm", "--network", "none", "xtask-tests/team:1"]);
    hello.expect(0, &["torch 2.15.0"]);
    docker(&["image", "rm", "--force", "xtask-tests/team:1"]);
}

#[test]
#[ignore = "needs the image"]
fn the_teams_lock_is_what_its_script_writes_and_cannot_move_torch() {
    let folder = copy();
    let committed = std::fs::read_to_string(folder.path().join("requirements.txt")).unwrap();
    run(folder.path(), "lock").expect(0, &[]);
    assert_eq!(std::fs::read_to_string(folder.path().join("requirements.txt")).unwrap(), committed);
    std::fs::write(folder.path().join("requirements.in"), "torch==2.9.1\n").unwrap();
    let refused = run(folder.path(), "lock");
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("torch==2.15.0"), "{refused:#?}");
}
