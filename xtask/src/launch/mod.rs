//! Containers that are started for a person: whose client, what stands in the way, and what answers then.

mod answer;
mod obstacles;

pub use answer::{Addresses, Container};
pub use obstacles::{Host, in_the_engine, on_the_host};

use crate::engine::{Choice, Engine, Kind};
use crate::recipe::{Client, Network};
use crate::runner::Step;
use anyhow::Result;
use std::path::Path;

/// The program that starts containers: docker for an engine, or podman, which needs none.
pub struct Starter {
    /// None where podman is there and docker is not.
    engine: Option<Engine>,
    /// Whose options it takes.
    pub client: Client,
}

impl Starter {
    /// Chooses. A podman under docker's name is found out.
    ///
    /// Errors: `E_ENGINE` where there is neither.
    pub fn find(choice: Choice, state: &Path, suite: &str) -> Result<Starter> {
        let has = |program: &str| which::which(program).is_ok();
        if choice == Choice::Auto && !has("docker") && has("podman") {
            return Ok(Starter { engine: None, client: Client::Podman });
        }
        let engine = Engine::find(choice, state, suite)?;
        let client = match engine.kind() == Kind::Docker && is_podman(&engine) {
            true => Client::Podman,
            false => Client::Docker,
        };
        Ok(Starter { engine: Some(engine), client })
    }

    /// The engine, where there is one that may have to be started.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    /// A command of the client.
    pub fn step<S: Into<String>>(
        &self,
        reason: impl Into<String>,
        args: impl IntoIterator<Item = S>,
    ) -> Step {
        match &self.engine {
            Some(engine) => engine.docker(reason, args),
            None => Step::new(reason, ["podman"]).args(args),
        }
    }

    /// The network of containers: the private engine touches nothing of the host's firewall, so that its own leads
    /// nowhere.
    pub fn network(&self) -> Network {
        match self.engine.as_ref().map(Engine::kind) {
            Some(Kind::Private) => Network::Host,
            _ => Network::Published,
        }
    }
}

/// `podman version` under docker's name says so.
fn is_podman(engine: &Engine) -> bool {
    let version = engine.docker("whose client it is", ["--version"]).output();
    version.is_ok_and(|out| out.stdout.to_lowercase().contains("podman"))
}
