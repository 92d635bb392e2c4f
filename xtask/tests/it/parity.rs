//! The base straight from wheels and the one that its Dockerfile makes: the same files, told by containers of both.

use crate::support::{Outcome, docker, project, xtask_in};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the two may differ, by the end of a path, and why.
const ACCEPTED: [(&str, &str); 1] = [("/etc/hostname", "docker writes it, a name for each container")];

/// An engine of its own: two bases are more than there is room for in the one that has the images.
struct Apart {
    state: PathBuf,
}

impl Apart {
    fn new() -> Apart {
        let state = project().join("target/xtask-parity");
        // The root is what it is; making it again would prove nothing.
        std::fs::create_dir_all(&state).unwrap();
        let mut copy = std::process::Command::new("cp");
        // Where there is none yet, it is made.
        copy.args(["-al", "target/xtask/roots"]).arg(&state).current_dir(project()).output().unwrap();
        Apart { state }
    }

    fn run(&self, args: &[&str]) -> Outcome {
        let state = self.state.display().to_string();
        xtask_in(&project(), args, &[("XTASK_STATE", &state), ("XTASK_ENGINE", "private")])
    }

    /// Every path of a base that one builder made, with what is told of it.
    fn files(&self, release: &str, builder: &str) -> BTreeMap<String, Value> {
        self.run(&["build", "--variant", "runtime", "--release", release, "--base-builder", builder])
            .expect(0, &[]);
        let state = self.state.display().to_string();
        let lists = project().join("xtask/tests/it/parity");
        let args = format!(
            "run --rm --network none --user 0:0 --volume {}:/lists:ro --entrypoint /opt/venv/bin/python \
             pytorch-cuda:{release}-runtime -B /lists/list.py /opt /usr/bin /etc",
            lists.display()
        );
        let listed = docker(&project(), &["--state", &state, "--engine", "private"], &project(), &args);
        let lines = listed.expect(0, &[]).stdout.lines();
        let files = lines.map(|line| serde_json::from_str::<(String, Value)>(line).unwrap()).collect();
        self.run(&["engine", "prune"]).expect(0, &[]);
        files
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.run(&["engine", "prune"]);
        std::fs::remove_dir_all(&self.state).ok();
    }
}

fn same(release: &str) {
    let apart = Apart::new();
    let (fast, reference) = (apart.files(release, "layers"), apart.files(release, "dockerfile"));
    assert!(fast.len() > 20_000, "only {} paths", fast.len());
    let paths: std::collections::BTreeSet<_> = fast.keys().chain(reference.keys()).collect();
    let is_accepted = |path: &str| ACCEPTED.iter().any(|(end, _)| path.ends_with(end));
    let differ: Vec<_> = paths
        .into_iter()
        .filter(|path| fast.get(*path) != reference.get(*path) && !is_accepted(path))
        .map(|path| format!("{path}: {:?} for {:?}", fast.get(path), reference.get(path)))
        .collect();
    assert!(differ.is_empty(), "{} of {}: {:#?}", differ.len(), fast.len(), &differ[..differ.len().min(20)]);
}

#[test]
#[ignore = "builds two bases"]
fn both_ways_give_the_same_files_2_15() {
    same("2.15");
}

#[test]
#[ignore = "builds two bases"]
fn both_ways_give_the_same_files_2_6() {
    same("2.6");
}
