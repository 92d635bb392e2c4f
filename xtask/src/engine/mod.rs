//! Whatever answers the docker API: the user's own docker, or a private one. Only this module knows docker's words.

mod bridge;
mod builder;
mod capabilities;
mod content;
mod daemon;
mod found;
mod private;
mod status;
mod traces;

pub use capabilities::{Capabilities, Disk, ImageStore, free_bytes};
pub use found::{Choice, Kind};
pub use status::{Status, down, prune, status};

use crate::interrupt;
use crate::problem::{Id, Problem, Refusal};
use crate::runner::Step;
use anyhow::{Error, Result};
use private::Private;
use std::cell::OnceCell;
use std::path::Path;

/// An engine that was chosen. It need not run yet.
pub struct Engine {
    private: Option<Private>,
    /// What it answered: that does not change while a command runs.
    capabilities: OnceCell<Capabilities>,
}

impl Engine {
    /// Chooses an engine: by `choice`, and with `auto` by what this host has. Starts nothing.
    ///
    /// `state` is the folder for everything private, `suite` Debian's name of the stable suite, which a private engine
    /// is taken from. Errors: `E_ENGINE`, which says what was found and what to install.
    pub fn find(choice: Choice, state: &Path, suite: &str) -> Result<Engine> {
        let private = match found::decide(choice, &found::probe(choice)?)? {
            Kind::Docker => None,
            Kind::Private => Some(Private::new(state, suite)?),
        };
        Ok(Engine { private, capabilities: OnceCell::new() })
    }

    /// Whose engine it is.
    pub fn kind(&self) -> Kind {
        match self.private {
            Some(_) => Kind::Private,
            None => Kind::Docker,
        }
    }

    /// Whether this is a private engine that holds nothing yet: it will have to be fetched, and everything built in it.
    pub fn is_new(&self) -> bool {
        let holds = |private: &Private| private.data_root().exists() && private.bundle().is_some();
        self.private.as_ref().is_some_and(|private| !holds(private))
    }

    /// Makes the engine ready: fetches and starts a private one; the user's docker was seen to answer.
    ///
    /// `say` is told what goes on. Errors: `E_ENGINE` with the end of the daemon's log, or what fetching ran into.
    pub fn up(&self, say: &dyn Fn(&str)) -> Result<()> {
        match &self.private {
            Some(private) => {
                interrupt::leaves("the private engine runs on (`cargo xtask engine down`)");
                private.up(say)
            }
            None => Ok(()),
        }
    }

    /// Whether it answers now, without being started.
    pub fn answers(&self) -> bool {
        self.private.as_ref().is_none_or(Private::answers)
    }

    /// Whether it answers no more, after it did: the user's docker is asked anew.
    pub fn has_ended(&self) -> bool {
        self.private.as_ref().map_or_else(found::docker_ended, |private| !private.answers())
    }

    /// An error as it is; or, where the engine ended under what was `doing`, that: whatever else was said comes of it. What
    /// was blamed on the engine once stays as it was told.
    pub fn blame(&self, doing: &str, error: Error) -> Error {
        let (place, who, cure) = self.words();
        let told = |refusal: &Refusal| refusal.0.iter().any(|problem| problem.place == place);
        if error.downcast_ref::<Refusal>().is_some_and(told) || !self.has_ended() {
            return error;
        }
        Refusal::from(Problem::new(Id::Engine, place, format!("{who} ended under {doing}"), cure)).into()
    }

    /// Where, who and what to do, for when it ended.
    fn words(&self) -> (String, &'static str, &'static str) {
        match &self.private {
            Some(private) => (
                format!("engine (log: {})", private.log().display()),
                "the private engine",
                "run the same command again: it starts the engine, and finished steps are kept",
            ),
            None => (
                "engine".to_owned(),
                "docker's daemon",
                "start it (`systemctl start docker`), then run the same command again: finished steps are kept",
            ),
        }
    }

    /// A docker command for this engine.
    pub fn docker<S: Into<String>>(
        &self,
        reason: impl Into<String>,
        args: impl IntoIterator<Item = S>,
    ) -> Step {
        let step = Step::new(reason, ["docker"]).args(args);
        match &self.private {
            Some(private) => private.environment().into_iter().fold(step, |s, (k, v)| s.env(k, v)),
            None => step,
        }
    }

    /// The network that build steps must name to reach the outside; none where the default does.
    ///
    /// The private engine has a bridge without address translation: nothing of the host's firewall is touched.
    pub fn build_network(&self) -> Option<&'static str> {
        self.private.as_ref().map(|_| "host")
    }

    /// What the engine can do, asked of it once. It must be up.
    ///
    /// Errors: `E_ENGINE` where it does not answer.
    pub fn capabilities(&self) -> Result<&Capabilities> {
        if let Some(known) = self.capabilities.get() {
            return Ok(known);
        }
        let asked = capabilities::ask(self)?;
        Ok(self.capabilities.get_or_init(|| asked))
    }

    /// The same, or of an engine that is not started yet what it is going to say.
    pub fn capabilities_once_started(&self) -> Result<Capabilities> {
        match self.answers() {
            true => self.capabilities().cloned(),
            false => Ok(Capabilities::of_private()),
        }
    }

    /// Whether what a builder of buildx builds is in this engine by itself; otherwise it has to be loaded.
    ///
    /// Errors: `E_ENGINE` for a builder that is not there, or that is another engine.
    pub fn has_builder(&self, builder: &str) -> Result<bool> {
        builder::is_engine(self, builder)
    }

    /// Where the engine keeps its data and how much room is left there; none where that is on another machine.
    ///
    /// Errors: `E_ENGINE` where it does not answer.
    pub fn disk(&self) -> Result<Option<Disk>> {
        capabilities::disk(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_of_an_engine_that_ended_is_blamed_on_it_once() {
        let state = tempfile::tempdir().unwrap();
        let error = || anyhow::anyhow!("the checks left no record");
        let engine = |private| Engine { private, capabilities: OnceCell::new() };
        let private = engine(Some(Private::new(state.path(), "trixie").unwrap()));
        let blamed = private.blame("the smoke test", error());
        let said = blamed.to_string();
        assert!(said.starts_with("error[E_ENGINE]: engine (log: /"), "{said}");
        assert!(said.contains("dockerd.log): the private engine ended under the smoke test\n"), "{said}");
        assert_eq!(private.blame("the build", blamed).to_string(), said);
    }
}
