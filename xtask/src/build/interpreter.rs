//! The one step of a base that needs an interpreter, and so a container.

use crate::engine::Engine;
use crate::render::{self, VENV_TARGET};
use crate::root::RootLayout;
use crate::runner::Step;
use anyhow::Result;
use std::path::Path;

/// The step in which a root's interpreter makes its layer.
///
/// Errors: what asking the engine runs into.
pub(super) fn python_step(engine: &Engine, root: &RootLayout, wheels: &Path, out: &Path) -> Result<Step> {
    let [root_dir, wheels, out] = [root.dir.as_path(), wheels, out].map(|path| path.display().to_string());
    let set = |key: &str, value: String| ["--set".to_owned(), format!("{VENV_TARGET}.{key}={value}")];
    let step = engine
        .docker("the interpreter makes the environment and its byte code", ["buildx", "bake"])
        .args([
            "--file",
            &format!("images/{}", render::BAKE_FILE),
            "--progress",
            "plain",
            "--provenance=false",
        ])
        .args(set("contexts.root", format!("oci-layout://{root_dir}@{}", root.digest)))
        .args(set("contexts.wheels", wheels.clone()))
        .args(set("output", format!("type=local,dest={out}")));
    let step = match engine.capabilities()?.bake_allow {
        true => step.args(
            [format!("fs.read={root_dir}"), format!("fs.read={wheels}"), format!("fs.write={out}")]
                .into_iter()
                .flat_map(|what| ["--allow".to_owned(), what]),
        ),
        false => step,
    };
    Ok(step.args([VENV_TARGET]))
}
