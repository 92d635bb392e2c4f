//! Images between the engine and a registry: the engine sends and fetches layers, and what fails for a moment is tried
//! again here. The engine keeps what is complete, so a later try sends only what is left.

use crate::engine::{Engine, ImageStore};
use crate::http::Failure;
use crate::out::Out;
use crate::problem::{Id, refuse};
use crate::registry::{Descriptor, Reference, Registry};
use crate::runner::Step;
use anyhow::Result;

/// The way between an engine and registries.
pub struct Transfer<'a> {
    /// Who has the images.
    pub engine: &'a Engine,
    /// Whom they are sent to.
    pub registry: &'a Registry<'a>,
    /// Where it is seen that one is under way.
    pub out: &'a Out,
}

impl Transfer<'_> {
    /// Sends an image of the engine, and returns what the registry has then.
    ///
    /// Errors: `E_DIGEST` where that is not what the engine has; a registry's own.
    pub fn push(&self, local: &str, digest: &str, to: &Reference) -> Result<Descriptor> {
        let name = to.to_string();
        self.engine.docker("a name for the registry", ["image", "tag", local, &name]).read()?;
        let pushed = self.again(to, &self.push_step(to));
        // The name was only for the way.
        let untag = self.engine.docker("the name for the registry goes", ["image", "rm", &name]);
        untag.taking_back().output().ok();
        pushed?;
        let Some(found) = self.registry.resolve(to)? else {
            return refuse(Id::Digest, name, "the registry does not have what was pushed", "push it again");
        };
        // The classic store compresses layers as it sends them: only the registry knows the digest.
        let kept = self.engine.capabilities()?.image_store == ImageStore::Containerd;
        if kept && found.digest != digest {
            let what = format!("the registry has {}, the engine {digest}", found.digest);
            return refuse(Id::Digest, name, what, "look who else pushes there, then push it again");
        }
        Ok(found)
    }

    /// Fetches an image by its digest.
    pub fn pull(&self, image: &Reference) -> Result<()> {
        self.again(image, &self.pull_step(image))
    }

    /// The command that sends an image.
    pub fn push_step(&self, to: &Reference) -> Step {
        self.engine.docker("push", ["image", "push", "--quiet", &to.to_string()])
    }

    /// The command that fetches an image.
    pub fn pull_step(&self, image: &Reference) -> Step {
        self.engine.docker("pull", ["image", "pull", "--quiet", &image.to_string()])
    }

    /// docker does not tell how long a registry wants to be left alone: that is asked of the registry itself before each
    /// later try.
    fn again(&self, image: &Reference, step: &Step) -> Result<()> {
        let mut tried = false;
        let what = format!("{} of {image}", step.reason);
        let once = || {
            if std::mem::replace(&mut tried, true) {
                self.registry.ready(&image.repository)?;
            }
            let out = step.output().map_err(|error| Failure::of_words(&error.to_string()))?;
            if out.status.success() { Ok(()) } else { Err(Failure::of_words(&out.stderr)) }
        };
        let result = self.out.wait(&what, || self.registry.retry().run(&what, once));
        result.map_err(|failure| failure.error(image.to_string()))
    }
}
