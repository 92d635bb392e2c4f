//! `ci`: everything that continuous integration checks, in the order in which it fails soonest.

use super::App;
use crate::cli::Ci as Args;
use crate::problem::{Id, refuse};
use crate::runner::Step;
use anyhow::Result;
use std::time::Instant;

/// Runs the checks one after the other; the first that fails ends it.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let steps = steps(args.fast)?;
    if app.dry_run {
        let lines: Vec<String> = steps.iter().map(Step::to_script).collect();
        return app.out.result(&lines.join("\n"), &lines);
    }
    let start = Instant::now();
    for step in &steps {
        let began = Instant::now();
        app.out.say(&format!("── {}: {}", step.reason, step.to_line()));
        if !step.passthrough()?.success() {
            let cure = "see the lines above; run this one command again until it passes";
            return refuse(Id::Check, &step.reason, format!("`{}` failed", step.to_line()), cure);
        }
        app.out.say(&format!("── {}: {:.1} s", step.reason, began.elapsed().as_secs_f64()));
    }
    app.out.say(&format!("all {} checks passed in {:.0} s", steps.len(), start.elapsed().as_secs_f64()));
    Ok(())
}

fn steps(fast: bool) -> Result<Vec<Step>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let own = std::env::current_exe()?.display().to_string();
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
        steps.extend([
            xtask("build and smoke test", &["build", "--variant", "runtime"]),
            cargo(
                "tests with the real engine and image",
                &["test", "--workspace", "--locked", "--", "--ignored", "--test-threads=1"],
            ),
        ]);
    }
    Ok(steps)
}
