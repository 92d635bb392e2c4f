//! `engine`: what answers the docker API, and the life of the private one.

use super::App;
use crate::cli::Engine as Action;
use crate::engine::{self, Choice, Status};
use crate::out::{gigabytes, word};
use anyhow::Result;

/// Runs one action; `status` is the only one with a result.
pub fn run(app: &App, action: Action) -> Result<()> {
    let project = app.project()?;
    let say = |line: &str| app.out.say(line);
    match action {
        Action::Status => {
            let status = engine::status(app.choice(), app.state(), project.suite())?;
            app.out.result(&text(&status), &status)
        }
        Action::Up => {
            app.engine(&project)?;
            app.out.result("", &engine::status(app.choice(), app.state(), project.suite())?)
        }
        Action::Down | Action::Prune if app.dry_run => {
            let status = engine::status(Choice::Private, app.state(), project.suite())?;
            let words = match status.running {
                true => "the private engine would be stopped",
                false => "no private engine is running",
            };
            app.out.done(words, &status)
        }
        Action::Down => {
            let _alone = app.alone()?;
            let done = engine::down(app.choice(), app.state(), project.suite(), &say)?;
            app.out.done(&done, &done)
        }
        Action::Prune => {
            let _alone = app.alone()?;
            let done = engine::prune(app.choice(), app.state(), project.suite(), &say)?;
            app.out.done(&done, &done)
        }
    }
}

/// A line a fact; what is not known is left out.
fn text(status: &Status) -> String {
    let bytes = |bytes: Option<u64>| bytes.map(gigabytes);
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let facts = [
        ("engine", Some(word(status.kind))),
        ("running", Some(status.running.to_string())),
        ("socket", path(&status.socket)),
        ("client", status.client.clone()),
        ("image store", status.image_store.map(word)),
        ("data", path(&status.data_root)),
        ("data size", bytes(status.data_bytes)),
        ("free", bytes(status.free_bytes)),
    ];
    let facts = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let versions = status.versions.iter().map(|(name, version)| (name.clone(), version.clone()));
    facts.chain(versions).map(|(name, value)| format!("{name:<18}{value}")).collect::<Vec<_>>().join("\n")
}
