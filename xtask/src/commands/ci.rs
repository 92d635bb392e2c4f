//! `ci`: everything that continuous integration checks, in the order in which it fails soonest.

use super::App;
use crate::catalog::Catalog;
use crate::cli::Ci as Args;
use crate::github;
use crate::interrupt;
use crate::out::word;
use crate::problem::{Exit, Id, Problem, Refusal};
use crate::runner::{Step, own_program};
use anyhow::Result;
use serde_json::json;
use std::process::ExitStatus;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Runs the checks one after the other; the first that fails ends it.
pub fn run(app: &App, args: &Args) -> Result<()> {
    walk(app, "Checks", &steps(args.fast, &app.project()?.catalog)?)
}

/// Runs commands one after the other, what they say going to where people see it; the first that fails ends it. A table
/// tells what each took.
///
/// Errors: `E_CHECK` with the command that failed; `E_HOST` where the host, an index or a registry stood in its way.
pub fn walk(app: &App, title: &str, steps: &[Step]) -> Result<()> {
    if app.dry_run {
        let lines: Vec<String> = steps.iter().map(Step::to_script).collect();
        return app.out.result(&lines.join("\n"), &lines);
    }
    let start = Instant::now();
    let mut checks = Vec::new();
    for step in steps {
        let began = Instant::now();
        app.out.say(&format!("── {}: {}", step.reason, step.to_line()));
        let status = patiently(app, step)?;
        if !status.success() {
            return Err(failure(step, status));
        }
        let seconds = began.elapsed().as_secs_f64();
        app.out.say(&format!("── {}: {seconds:.1} s", step.reason));
        checks.push(json!({"check": step.reason, "seconds": seconds}));
    }
    let words = format!(
        "all {} {} passed in {:.0} s",
        steps.len(),
        title.to_lowercase(),
        start.elapsed().as_secs_f64()
    );
    let rows = checks
        .iter()
        .map(|it| [word(&it["check"]), format!("{:.1} s", it["seconds"].as_f64().unwrap_or_default())]);
    let head = ["CHECK", "TIME"].map(str::to_owned);
    github::summarize(title, &std::iter::once(head).chain(rows).collect::<Vec<_>>());
    app.out.done(&words, &checks)
}

/// What a step ended with that did not pass. One that cannot be run here tells nothing of what it checks.
fn failure(step: &Step, status: ExitStatus) -> anyhow::Error {
    let line = step.to_line();
    let problem = match is_in_the_way(status) {
        true => Problem::new(
            Id::Host,
            &step.reason,
            format!("`{line}` cannot be run here now"),
            "see the lines above for what is in the way; then run the same command again",
        ),
        false => Problem::new(
            Id::Check,
            &step.reason,
            format!("`{line}` failed"),
            "see the lines above; run this one command again until it passes",
        ),
    };
    Refusal::from(problem).into()
}

/// Whether the host, an index or a registry was the cause.
fn is_in_the_way(status: ExitStatus) -> bool {
    status.code() == Some(Exit::Unusable as i32)
}

/// How often a step is tried that the host or the network stood in the way of, and the longest pause before it is tried
/// again.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(30);

/// How a step ends. A network that is away for a moment is no failure of what is checked; nobody waits longer than for a
/// registry.
fn patiently(app: &App, step: &Step) -> Result<ExitStatus> {
    let pause = PAUSE.min(app.retry.budget);
    for _ in 1..TRIES {
        let status = follow(app, step)?;
        if !is_in_the_way(status) {
            return Ok(status);
        }
        app.out.say(&format!("── {}: once more in {} s", step.reason, pause.as_secs()));
        interrupt::sleep(pause)?;
    }
    follow(app, step)
}

/// Lets people see a check run. Where only results are wanted, what it said is told if it does not pass.
fn follow(app: &App, step: &Step) -> Result<ExitStatus> {
    if !app.out.quiet && !app.out.json {
        return step.passthrough();
    }
    let mut said = String::new();
    let status = step.stream(|_, line| {
        said.push_str(line);
        said.push('\n');
    })?;
    if !status.success() {
        app.out.insist(&said);
    }
    Ok(status)
}

/// Modules of tests that build in the state folder, which is for one at a time, or do things to the engine that the others
/// would feel.
const ALONE: [&str; 4] = ["beyond::", "killed::", "real::", "reproducible::"];

fn steps(fast: bool, catalog: &Catalog) -> Result<Vec<Step>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let own = own_program()?;
    let cargo = |reason: &str, args: &[&str]| Step::new(reason, [cargo.as_str()]).args(args.iter().copied());
    let xtask = |reason: &str, args: &[&str]| Step::new(reason, [own.as_str()]).args(args.iter().copied());
    let mut steps = vec![
        cargo("format", &["fmt", "--all", "--check"]),
        cargo("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"]),
        xtask("the lock fits the catalog", &["lock", "--check"]),
        xtask("images/ is as rendered", &["render", "--check"]),
        cargo("tests", &["test", "--workspace", "--locked"]),
    ];
    if !fast {
        let default = catalog.defaults.release.as_str();
        let ignored = |reason: &str, threads: &str, which: &[&str]| {
            let test =
                ["test", "--workspace", "--locked", "--no-fail-fast", "--", "--ignored", "--test-threads"];
            cargo(reason, &[&test[..], &[threads], which].concat())
        };
        let not = |modules: &[&'static str]| modules.iter().flat_map(|it| ["--skip", it]).collect::<Vec<_>>();
        // One base with its images is 25 GB: what builds another waits until the room of the first is free. `parity::`
        // builds four and takes longer than all the rest: it is run by hand when the way a base is made changes.
        let room = || xtask("room for another base", &["engine", "prune"]);
        steps.extend([
            xtask("build and smoke test", &["build", "--all", "--release", default]),
            ignored(
                "tests that share the engine",
                "2",
                &not(&[&ALONE[..], &["registry::", "parity::"]].concat()),
            ),
            ignored("tests that have it for themselves", "1", &ALONE),
            room(),
            ignored("a root of a registry", "1", &["registry::"]),
        ]);
        if let Some(release) = of_the_day(catalog, days()?) {
            let reason = format!("another release: {release}");
            steps.extend([room(), xtask(&reason, &["build", "--variant", "runtime", "--release", release])]);
        }
    }
    Ok(steps)
}

/// The release beside the default one whose turn it is.
fn of_the_day(catalog: &Catalog, day: u64) -> Option<&str> {
    let mut others = catalog.releases_newest_first();
    others.retain(|name| *name != catalog.defaults.release);
    let turn = usize::try_from(day).ok()?.checked_rem(others.len())?;
    Some(others[turn])
}

/// Days since 1970.
fn days() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / (24 * 60 * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_release_has_its_turn() {
        let catalog = Catalog::parse("v.yaml", include_str!("../../../variants.yaml")).unwrap();
        let turns: Vec<_> = (0..4).map(|day| of_the_day(&catalog, day).unwrap()).collect();
        assert_eq!(turns, ["2.9", "2.8", "2.6", "2.9"]);
    }
}
