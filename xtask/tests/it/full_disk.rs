//! A disk that is full at any point: one refusal, no torn file, and the next run goes on. On a real file system that is
//! full, in a mount namespace of its own.

use crate::order::Doubles;
use crate::support::{Copy, Outcome, command_in, project, texts};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Runs a command where `folder` is on a file system of its own with `pages` of 4096 bytes free beside what it holds. What
/// it holds in the end is copied to `kept`.
pub fn on_a_full_disk(run: &Command, folder: &Path, pages: u32, kept: &Path) -> Outcome {
    let script = r#"set -eu; here=$PWD folder=$1 pages=$2 kept=$3; shift 3
mkdir -p "$folder" "$kept"; cp -r "$folder" "$kept.before"
mount -t tmpfs -o size=16m tmpfs "$folder"; cp -r "$kept.before/." "$folder"
free=$(stat --file-system --format=%f "$folder")
dd if=/dev/zero of="$folder/filling" bs=4096 count=$((free - pages)) status=none
cd "$here"; rc=0; "$@" || rc=$?
rm "$folder/filling"; cp -r "$folder/." "$kept"; exit $rc"#;
    let mut sh = Command::new("unshare");
    sh.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]);
    sh.arg(folder).arg(pages.to_string()).arg(kept).arg(run.get_program()).args(run.get_args());
    sh.current_dir(run.get_current_dir().unwrap());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => sh.env(name, value),
            None => sh.env_remove(name),
        };
    }
    Outcome::of(sh.output().unwrap())
}

#[test]
#[ignore = "mounts a file system"]
fn a_build_on_a_full_disk_is_one_refusal_wherever_it_comes_to_its_end() {
    let mut ends = BTreeSet::new();
    // A build with doubles keeps less than sixty pages.
    for pages in (0..64).step_by(2) {
        let doubles = Doubles::new();
        let state = doubles.copy.path("state");
        let kept = doubles.copy.path("kept");
        let build = ["build", "--variant", "runtime", "--state", state.to_str().unwrap()];
        let outcome = on_a_full_disk(&doubles.command(&build, &[]), &state, pages, &kept);
        let at = outcome.stderr.lines().find(|line| line.starts_with("error")).unwrap_or("good").to_owned();
        match outcome.code {
            Some(0) => {}
            _ => drop(outcome.expect(3, &["error[E_DISK]: ", "help: free some space"])),
        }
        ends.insert(at.replace(doubles.copy.dir.path().to_str().unwrap(), ""));
        // What was left is whole: the next run takes it or makes it anew.
        std::fs::remove_dir_all(&state).unwrap();
        std::fs::rename(&kept, &state).unwrap();
        assert_eq!(
            doubles.run(&build, &[]).expect(0, &[]).stdout,
            "sha256:1\n",
            "{pages} pages: {outcome:#?}"
        );
    }
    // It was met in more than one place, and in the end there was room.
    assert!(ends.len() > 3 && ends.contains("good"), "{ends:#?}");
}

#[test]
#[ignore = "mounts a file system"]
fn a_rendered_file_is_the_old_one_or_the_new_one() {
    let mut ends = BTreeSet::new();
    for pages in [0, 1, 2, 4, 8, 100] {
        let copy = Copy::new();
        copy.edit_file(
            "templates/variant.Dockerfile.tera",
            "FROM {{ variant.from }}",
            "# new\nFROM {{ variant.from }}",
        );
        let images = copy.path("images");
        let old = texts(&images);
        let render = command_in(copy.dir.path(), &["render"], &[]);
        let elsewhere = tempfile::tempdir().unwrap();
        let kept = elsewhere.path().join("kept");
        let outcome = on_a_full_disk(&render, copy.dir.path(), pages, &kept);
        if outcome.code != Some(0) {
            outcome.expect(3, &["error[E_DISK]: ", "No space left on device"]);
        }
        ends.insert(outcome.code);
        let left = texts(&kept.join("images"));
        copy.xtask(&["render"]).expect(0, &[]);
        let new = texts(&images);
        assert_ne!(old, new);
        for (path, text) in &left {
            assert!(old.get(path) == Some(text) || new.get(path) == Some(text), "{pages}: {path:?}");
        }
    }
    assert_eq!(ends, BTreeSet::from([Some(0), Some(3)]));
}

/// Stands in for uv: one wheel, whatever is asked for; it says what `$DOUBLE/uv.err` says, and fails then.
const UV: &str = r#"#!/bin/sh
[ "$1" = --version ] && echo "uv 0-double" && exit
[ -e "$DOUBLE/uv.err" ] && cat "$DOUBLE/uv.err" >&2 && exit 2
while [ $# -gt 1 ]; do [ "$1" = --output-file ] && output=$2; shift; done
printf '[[packages]]\nname = "torch"\nversion = "0"\nwheels = [{name = "torch-0-py3-none-any.whl", ' > "$output"
printf 'size = 1, hashes = {sha256 = "0"}}]\n' >> "$output"
"#;

/// `lock --update` with doubles of all that it starts.
fn update(doubles: &Doubles, bin: &Path) -> Command {
    std::fs::write(bin.join("uv"), UV).unwrap();
    std::fs::set_permissions(bin.join("uv"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let ours = project().join("xtask/tests/it/doubles");
    let path = format!("{}:{}:{}", bin.display(), ours.display(), std::env::var("PATH").unwrap());
    doubles.command(&["lock", "--update"], &[("PATH", &path)])
}

#[test]
fn a_resolver_on_a_full_disk_leaves_the_lock_as_it_is() {
    let (doubles, bin) = (Doubles::new(), tempfile::tempdir().unwrap());
    let lock = doubles.copy.path("images/lock.json");
    let old = std::fs::read_to_string(&lock).unwrap();
    let doubles = doubles.say("uv.err", "error: failed to write: No space left on device (os error 28)");
    let outcome = Outcome::of(update(&doubles, bin.path()).output().unwrap());
    outcome.expect(3, &["error[E_DISK]: resolving the wheels", "help: free some space"]);
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), old);
    // With room again, the same command makes a new one.
    std::fs::remove_file(doubles.copy.path("double/uv.err")).unwrap();
    Outcome::of(update(&doubles, bin.path()).output().unwrap()).expect(0, &["wrote images/lock.json"]);
    assert_ne!(std::fs::read_to_string(&lock).unwrap(), old);
}

#[test]
#[ignore = "mounts a file system"]
fn a_lock_is_the_old_one_or_the_new_one() {
    let mut ends = BTreeSet::new();
    for pages in [0, 8, 24, 45, 64] {
        let (doubles, bin) = (Doubles::new(), tempfile::tempdir().unwrap());
        let lock = doubles.copy.path("images/lock.json");
        let old = std::fs::read_to_string(&lock).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let kept = elsewhere.path().join("kept");
        let run = update(&doubles, bin.path());
        let outcome = on_a_full_disk(&run, doubles.copy.dir.path(), pages, &kept);
        let left = std::fs::read_to_string(kept.join("images/lock.json")).unwrap();
        if outcome.code == Some(0) {
            let new: serde_json::Value = serde_json::from_str(&left).unwrap();
            assert_eq!(new["uv"], "0-double", "{pages}");
        } else {
            outcome.expect(3, &["error[E_DISK]: ", "help: free some space"]);
            assert_eq!(left, old, "{pages}: {outcome:#?}");
        }
        let at = outcome.stderr.lines().find(|line| line.starts_with("error")).unwrap_or("good").to_owned();
        ends.insert(at.split(['/', ':']).nth(1).unwrap_or("good").to_owned());
    }
    // It was met in more than one place, and in the end there was room.
    assert!(ends.len() > 2 && ends.contains("good"), "{ends:#?}");
}
