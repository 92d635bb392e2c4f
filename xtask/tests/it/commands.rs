//! What holds for every command: its options, its help, its errors, its results.

use crate::order::Doubles;
use crate::support::{Copy, Outcome, project, xtask_in};
use serde_json::Value;
use std::collections::BTreeSet;

/// A line for every command that works without a real engine, a registry or the network.
const LINES: &[&str] = &[
    "check",
    "list",
    "explain --torch 2.9 --cuda 12.8",
    concat!("doctor --fixtures ", env!("CARGO_MANIFEST_DIR"), "/tests/doctor/OK"),
    "plan --variant runtime",
    "matrix",
    "lock --check",
    "render --check",
    "build --variant runtime",
    "smoke --variant runtime",
    "site --out pages",
    "run --variant runtime --gpus none --user 0:0 --detach",
    "compose --variant devel",
    "k8s --variant devel",
    "slurm --variant runtime",
    "engine status",
    "cache status",
    "bench",
    "ci",
    "completions bash",
];

/// Commands that need a registry: `published.rs` has their lines.
const OF_REGISTRIES: &[&str] = &["publish", "nightly", "freshness", "prune", "diff", "size"];

/// The commands that the program offers.
fn commands() -> Vec<String> {
    let help = xtask_in(&project(), &["--help"], &[]);
    let list = help.expect(0, &[]).stdout.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands = list.lines().filter(|line| line.starts_with("  "));
    let names = commands
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_line_here_and_its_help_ends_with_examples() {
    let lines: BTreeSet<&str> = LINES.iter().map(|line| line.split(' ').next().unwrap()).collect();
    for command in commands() {
        let known = lines.contains(command.as_str()) || OF_REGISTRIES.contains(&command.as_str());
        assert!(known, "add a line for `{command}` to LINES");
        let help = xtask_in(&project(), &[&command, "--help"], &[]);
        let examples = help.expect(0, &[]).stdout.split("Examples:\n").nth(1).unwrap_or_default().to_owned();
        assert_eq!(examples.matches("  cargo xtask ").count(), 2, "{command}: {examples}");
    }
}

fn run(doubles: &Doubles, line: &str, options: &[&str]) -> Outcome {
    doubles.run(&line.split(' ').chain(options.iter().copied()).collect::<Vec<_>>(), &[])
}

#[test]
fn quiet_is_quiet_and_json_is_json_in_every_command() {
    for line in LINES {
        let doubles = Doubles::new();
        // What they do takes minutes and hours.
        let dry: &[&str] = if ["ci", "bench"].contains(line) { &["--dry-run"] } else { &[] };
        let outcome = run(&doubles, line, &[&["--quiet", "--json"], dry].concat());
        outcome.expect(0, &[]);
        assert_eq!(outcome.stderr, "", "{line} says something with --quiet");
        let json: Result<Value, _> = serde_json::from_str(&outcome.stdout);
        assert!(json.is_ok_and(|it| !it.is_null()), "{line} --json: {}", outcome.stdout);
    }
}

#[test]
fn a_dry_run_changes_nothing_in_any_command() {
    for line in LINES.iter().chain(&["render", "engine up", "engine down", "engine prune"]) {
        let doubles = Doubles::new();
        run(&doubles, line, &["--dry-run"]).expect(0, &[]);
        let changes = ["buildx bake --file", "run --rm", "image tag", "image rm", "push"];
        let calls = doubles.all_calls();
        let changed = calls.lines().find(|call| changes.iter().any(|it| call.starts_with(it)));
        assert_eq!(changed, None, "{line} --dry-run");
        let written = ["target/xtask/reports", "pages"].map(|path| doubles.copy.path(path).exists());
        assert_eq!(written, [false, false], "{line} --dry-run");
    }
}

#[test]
fn errors_look_the_same_whoever_finds_them() {
    let copy = Copy::new();
    copy.edit("    torchvision:", "    torchvison:");
    let cases: [(&[&str], i32, &str); 5] = [
        (&["build", "--varian", "x"], 2, "error[E_USAGE]: cargo xtask build: "),
        (&["buidl"], 2, "error[E_USAGE]: cargo xtask: "),
        (&["check"], 2, "error[E_SCHEMA]: variants.yaml:"),
        (&["list", "--file", "gone.yaml"], 2, "error[E_SCHEMA]: gone.yaml: "),
        (&["build", "--variant", "runtime", "--json", "--quiet"], 2, "error[E_SCHEMA]: variants.yaml:"),
    ];
    for (args, code, begins) in cases {
        let outcome = copy.xtask(args);
        outcome.expect(code, &["\n  help: "]);
        assert!(outcome.stderr.starts_with(begins), "{args:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{args:?}");
    }
    // What no refusal was made for: the system says no.
    let copy = Copy::new();
    let outcome = copy.xtask(&["site", "--out", "variants.yaml/pages"]);
    outcome.expect(3, &["Not a directory", "\n  help: "]);
    assert!(outcome.stderr.starts_with("error[E_HOST]: reading variants.yaml/pages"), "{outcome:#?}");
}

#[test]
fn github_is_told_the_line_of_a_problem_and_shows_the_images() {
    let copy = Copy::new();
    copy.edit("    torchvision:", "    torchvison:");
    let outcome = copy.xtask_with(&["check"], &[("GITHUB_ACTIONS", "true")]);
    outcome.expect(2, &["\n::error file=variants.yaml,line=", "title=E_SCHEMA%3A variants.yaml"]);
    assert!(!copy.xtask(&["check"]).stderr.contains("::error"));

    let doubles = Doubles::new();
    let summary = doubles.copy.path("summary.md");
    let env = [("GITHUB_STEP_SUMMARY", summary.to_str().unwrap())];
    doubles.run(&["build", "--variant", "runtime"], &env).expect(0, &["RELEASE", "not-gpu-tested"]);
    let text = std::fs::read_to_string(&summary).unwrap();
    assert!(text.contains("| 2.15 | runtime | built | sha256:1 | 0.00 GB | not-gpu-tested |"), "{text}");
}

/// No colour and no moving line, neither where the environment asks for none nor in a pipe.
#[test]
fn words_are_plain() {
    let help = |env: &[(&str, &str)]| {
        // `script` gives the program a terminal of its own.
        let line = format!("'{}' build --help; '{0}' buidl", env!("CARGO_BIN_EXE_xtask"));
        let mut script = std::process::Command::new("script");
        script.args(["--quiet", "--command", &line, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
        String::from_utf8_lossy(&script.envs(env.iter().copied()).output().unwrap().stdout).into_owned()
    };
    let (plain, colored) = (help(&[("NO_COLOR", "1")]), help(&[]));
    assert!(plain.contains("Usage: cargo xtask build") && !plain.contains('\x1b'), "{plain:?}");
    assert!(colored.contains('\x1b'), "a terminal gets colours: {colored:?}");
}

/// On a new machine: a question for help is answered, and what only looks fetches no engine.
#[test]
fn the_first_steps_of_a_new_user_lead_somewhere() {
    let copy = Copy::new();
    for line in [&[][..], &["engine"]] {
        copy.xtask(line).expect(2, &["Usage: cargo xtask", "Commands:"]);
    }
    copy.xtask(&["build"]).expect(2, &["error[E_USAGE]: cargo xtask build", "usage: `cargo xtask build"]);
    copy.xtask(&["site", "--out", "variants.yaml"]).expect(2, &["error[E_USAGE]: --out", "is a file"]);
    let alone = |args: &[&str]| copy.xtask_with(args, &[("XTASK_ENGINE", "private")]);
    alone(&["plan", "--variant", "runtime"]).expect(0, &["build", "new"]);
    let smoke = alone(&["smoke", "--variant", "runtime"]);
    smoke.expect(2, &["error[E_NO_IMAGE]", "`cargo xtask build` makes it"]);
    alone(&["smoke", "--image", "x:y"]).expect(2, &["error[E_NO_IMAGE]: x:y: this engine has no such image"]);
    // Nobody listens there.
    let far = alone(&["smoke", "--image", "127.0.0.1:1/x:y", "--retry-budget", "0s"]);
    far.expect(3, &["error[E_NETWORK]: 127.0.0.1:1/x:y: "]);
    alone(&["size", "x"]).expect(2, &["error[E_NO_IMAGE]: x: "]);
    alone(&["diff", "x", "y"]).expect(2, &["error[E_NO_IMAGE]: x: "]);
    assert!(!copy.path("target/xtask/engine").exists(), "an engine was fetched");

    let doubles = Doubles::new().say("image.rc", "1");
    doubles.run(&["size", "x"], &[]).expect(2, &["error[E_NO_IMAGE]: x: "]);
    doubles.run(&["smoke", "--variant", "mlflow"], &[]).expect(2, &["error[E_NO_IMAGE]"]);
    assert!(!doubles.all_calls().contains("run --rm"));
}
