//! GPUs: what a name means, and which compiled code runs on them.

use super::Compat;
use crate::catalog::Platform;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One GPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Its compute capability.
    pub sm: Sm,
    /// A key of [`super::Drivers::gpu`], where NVIDIA asks for a driver of the generation.
    pub generation: String,
    /// The one platform whose machines have it.
    pub platform: Option<Platform>,
    /// Whether it runs only code for exactly its own compute capability.
    #[serde(default)]
    pub tegra: bool,
}

/// A compute capability: `8.6`, which compilers write `sm_86`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sm {
    major: u32,
    minor: u32,
}

impl Sm {
    /// Reads `8.6`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Sm> {
        let (major, minor) = text.split_once('.')?;
        Some(Sm { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Reads `sm_86`: the last digit is the minor. `None` for anything else.
    pub fn of_arch(arch: &str) -> Option<Sm> {
        let number: u32 = arch.strip_prefix("sm_")?.parse().ok()?;
        Some(Sm { major: number / 10, minor: number % 10 })
    }

    /// Of what was compiled, what runs here: the same major, a minor that is not higher; with `exact` only its own.
    pub fn runs(self, arch_list: &[String], exact: bool) -> Option<&str> {
        let fits = |sm: Sm| if exact { sm == self } else { sm.major == self.major && sm.minor <= self.minor };
        arch_list.iter().rev().find(|arch| Sm::of_arch(arch).is_some_and(fits)).map(String::as_str)
    }
}

impl fmt::Display for Sm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<Sm> for String {
    fn from(sm: Sm) -> String {
        sm.to_string()
    }
}

impl TryFrom<String> for Sm {
    type Error = String;

    fn try_from(text: String) -> Result<Sm, String> {
        Sm::parse(&text).ok_or_else(|| format!("`{text}` is not a compute capability like 8.6"))
    }
}

impl Compat {
    /// The GPU that a name means, however it is spelt: `NVIDIA GeForce GTX 1080 Ti`, `gtx1080ti`.
    pub fn gpu(&self, written: &str) -> Option<(&str, &Gpu)> {
        let wanted = self.plain(written);
        let mut gpus = self.gpus.facts.iter();
        gpus.find(|(name, _)| self.plain(name) == wanted).map(|(name, gpu)| (name.as_str(), gpu))
    }

    /// The known GPU whose name is nearest to a text.
    pub fn nearest_gpu(&self, written: &str) -> Option<&str> {
        let plain: Vec<(String, &String)> =
            self.gpus.facts.keys().map(|name| (self.plain(name), name)).collect();
        let wrong = self.plain(written);
        let names = || plain.iter().map(|(it, _)| it.as_str());
        // The number alone, as people say it: 5090.
        let of_number = names().find(|name| wrong.len() > 2 && name.ends_with(&wrong));
        let near = of_number.or_else(|| crate::problem::nearest(&wrong, names()))?;
        plain.iter().find(|(it, _)| it == near).map(|(_, name)| name.as_str())
    }

    /// The generation of the GPUs with a compute capability.
    pub fn generation(&self, sm: Sm) -> Option<&str> {
        self.gpus.facts.values().find(|gpu| gpu.sm == sm).map(|gpu| gpu.generation.as_str())
    }

    /// A name without case, spaces and hyphens, and without the words that do not tell GPUs apart.
    fn plain(&self, name: &str) -> String {
        let name = name.to_lowercase();
        let is_noise = |word: &str| self.gpu_words.iter().any(|noise| noise == word);
        let words = name.split_whitespace().filter(|word| !is_noise(word)).flat_map(|word| word.split('-'));
        let mut plain: String = words.filter(|word| !is_noise(word)).collect();
        while let Some(rest) = self.gpu_words.iter().find_map(|noise| plain.strip_prefix(noise.as_str())) {
            plain = rest.to_owned();
        }
        plain
    }
}
