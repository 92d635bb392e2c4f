//! uv: the resolver, and who knows where packages come from.

use super::Wheel;
use crate::catalog::Platform;
use crate::faults;
use crate::problem::{Id, refuse};
use crate::runner::Step;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The resolver: the user's uv, or one in a private environment.
pub struct Uv(PathBuf);

impl Uv {
    /// Finds it, or makes it in a private environment below `state`.
    ///
    /// Errors: `E_TOOL` where there is neither; what fetching runs into.
    pub fn find(state: &Path, progress: &dyn Fn(&str)) -> Result<Uv> {
        if let Ok(found) = which::which("uv") {
            return Ok(Uv(found));
        }
        let folder = state.join("tools/uv");
        let uv = folder.join("bin/uv");
        if !uv.exists() {
            progress("fetching uv into a private environment");
            let python = Step::new("private environment", ["python3", "-m", "venv"]);
            let made = python.args([folder.display().to_string()]).output();
            if !made.is_ok_and(|out| out.status.success()) {
                return refuse(
                    Id::Tool,
                    "uv",
                    "there is no uv on PATH, and no python3 that could make an environment for one",
                    "install uv, or python3 with its venv module",
                );
            }
            let pip = folder.join("bin/pip").display().to_string();
            let out = Step::new("the resolver", [pip.as_str(), "install", "--quiet", "uv"]).output()?;
            if !out.status.success() {
                // Without its uv, the folder is of no use to the next run.
                std::fs::remove_dir_all(&folder).ok();
                return faults::refuse_or_bail("fetching uv", &out.stderr);
            }
        }
        Ok(Uv(uv))
    }

    fn step(&self, reason: &str) -> Step {
        Step::new(reason, [self.0.display().to_string()])
    }

    /// Its version.
    pub fn version(&self) -> Result<String> {
        let text = self.step("which uv").args(["--version"]).read()?;
        Ok(text.split_whitespace().nth(1).unwrap_or(&text).to_owned())
    }

    /// Asks for the wheels of one platform as a pylock; what is `fixed` keeps its version. Only wheels: building a source
    /// on the host would not be pinned.
    pub fn resolve(
        &self,
        requirements: &str,
        fixed: &[Wheel],
        python: &str,
        platform: Platform,
    ) -> Result<String> {
        let folder = tempfile::tempdir()?;
        let [input, constraints, output] =
            ["requirements.in", "constraints.txt", "pylock.toml"].map(|name| folder.path().join(name));
        std::fs::write(&input, requirements)?;
        let pins = fixed.iter().map(|wheel| format!("{}=={}\n", wheel.name, wheel.version));
        std::fs::write(&constraints, pins.collect::<String>())?;
        let out = self
            .step("resolve the wheels")
            .args(["pip", "compile", "--quiet", "--format", "pylock.toml"])
            .args(["--only-binary", ":all:", "--python-version", python])
            .args(["--python-platform", &format!("{}-manylinux_2_28", platform.machine())])
            .args(["--constraints".to_owned(), constraints.display().to_string()])
            .args(["--output-file".to_owned(), output.display().to_string(), input.display().to_string()])
            .output()?;
        if !out.status.success() {
            return faults::refuse_or_bail("resolving the wheels", &out.stderr);
        }
        Ok(std::fs::read_to_string(output)?)
    }

    /// The index that the tools take where the host's configuration names none.
    pub fn default_index(&self) -> Result<String> {
        let step = self.step("the default index").args([
            "pip",
            "compile",
            "--quiet",
            "--no-header",
            "--emit-index-url",
        ]);
        let said = step.args(["/dev/null"]).read()?;
        let index = said.lines().find_map(|line| line.trim().strip_prefix("--index-url "));
        index.map(str::to_owned).context("uv names no default index")
    }
}
