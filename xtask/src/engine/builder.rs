//! Builders of buildx, and where what they build is then.

use super::Engine;
use crate::problem::{Id, refuse};
use crate::runner::tail;
use anyhow::Result;

/// The driver whose builders are engines themselves.
const DOCKER: &str = "docker";

/// Whether the images of a builder are in an engine by themselves; those of all others have to be loaded.
///
/// Errors: `E_ENGINE` for a builder that is not there, or that is another engine than this.
pub fn is_engine(engine: &Engine, builder: &str) -> Result<bool> {
    let said = engine.docker("what the builder is", ["buildx", "inspect", builder]).output()?;
    let Some(driver) = driver(&said.stdout).filter(|_| said.status.success()) else {
        return refuse(
            Id::Engine,
            format!("--builder {builder}"),
            format!("buildx knows no such builder: {}", tail(said.stderr.trim(), 1)),
            "`docker buildx ls` lists the builders, `docker buildx create` makes one",
        );
    };
    if driver != DOCKER {
        return Ok(false);
    }
    let context = engine.docker("whose engine it is", ["context", "show"]).read()?;
    if context.trim() == builder {
        return Ok(true);
    }
    refuse(
        Id::Engine,
        format!("--builder {builder}"),
        "it is the engine of another docker context, and what it builds would stay there untested",
        format!("set DOCKER_CONTEXT={builder}, and leave --builder out"),
    )
}

/// The driver in what `buildx inspect` prints.
fn driver(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("Driver:")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_read() {
        assert_eq!(
            driver("Name:          k\nDriver:        kubernetes\nLast Activity: x\n"),
            Some("kubernetes")
        );
        assert_eq!(driver("ERROR: no builder"), None);
    }
}
