//! The image and the container in question, as the engine tells of them.

use super::driver::answer;
use crate::doctor::facts::{Container, Engine, Image, Smi};
use crate::doctor::source::{Ran, Source};
use crate::problem::{Id, Problem};
use crate::runner::Step;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the host is judged for.
#[derive(Debug, Default)]
pub struct Subject {
    /// An image of ours, as it is planned.
    pub plan: Option<Image>,
    /// Any image.
    pub image: Option<String>,
    /// A container that runs.
    pub container: Option<String>,
}

/// Looks at them. `label` makes the name of one of our labels.
///
/// Errors: `E_UNKNOWN_NAME` for a container that is not there, `E_BASE_GONE` for an image that is nowhere.
pub fn probe(
    source: &Source,
    engine: &Engine,
    subject: Subject,
    label: &dyn Fn(&str) -> String,
) -> Result<(Option<Image>, Option<Container>), Problem> {
    let asking = Asking { source, program: engine.program, label };
    let container = subject.container.as_deref().map(|name| asking.container(name)).transpose()?;
    let (container, of_container) = container.unzip();
    let image = match (&subject.image, &subject.plan) {
        (Some(name), _) => Some(asking.image(name)?),
        (None, Some(plan)) => asking.local(&plan.name).or(subject.plan),
        (None, None) => of_container,
    };
    Ok((image, container))
}

struct Asking<'a> {
    source: &'a Source,
    program: &'static str,
    label: &'a dyn Fn(&str) -> String,
}

impl Asking<'_> {
    /// The engine's client, whatever its name.
    fn ask(&self, probe: &str, reason: &str, args: &[&str]) -> Option<Ran> {
        match self.program {
            "docker" => self.source.docker(probe, reason, args.iter().copied()),
            program => self.source.run(probe, Step::new(reason, [program]).args(args.iter().copied())),
        }
    }

    fn first(&self, probe: &str, reason: &str, args: &[&str]) -> Option<Value> {
        let ran = self.ask(probe, reason, args).filter(|ran| ran.code == 0)?;
        let list: Value = serde_json::from_str(ran.out.trim()).ok()?;
        list.get(0).cloned()
    }

    /// An image of the engine.
    fn local(&self, name: &str) -> Option<Image> {
        let found = self.first("image", "what the image says of itself", &["image", "inspect", name])?;
        Some(Image { here: true, ..self.of_config(name, found.get("Config")?) })
    }

    fn image(&self, name: &str) -> Result<Image, Problem> {
        let format = "{{json .Image}}";
        let args = ["buildx", "imagetools", "inspect", "--format", format, name];
        let far = || self.ask("image-far", "what a registry says of it", &args);
        if let Some(image) = self.local(name) {
            return Ok(image);
        }
        let ran = far().unwrap_or_default();
        let config: Value = serde_json::from_str(ran.out.trim()).unwrap_or_default();
        // One configuration, or one for each platform.
        let config = match (config.get("config"), config.as_object()) {
            (Some(config), _) => Some(config),
            (None, Some(platforms)) => platforms.values().find_map(|it| it.get("config")),
            _ => None,
        };
        match config {
            Some(config) => Ok(self.of_config(name, config)),
            None if self.source.is_dry() => Ok(Image::default()),
            None => {
                let what = format!("neither this engine nor a registry has it: {}", ran.err.trim());
                let cure = format!("spell it as `{} pull` takes it, or pull it first", self.program);
                Err(Problem::new(Id::BaseGone, format!("--image {name}"), what, cure))
            }
        }
    }

    /// What the variables and labels of a configuration say.
    fn of_config(&self, name: &str, config: &Value) -> Image {
        let label = |key: &str| {
            let value = config.get("Labels").and_then(|labels| labels.get((self.label)(key)));
            value.and_then(Value::as_str).map(str::to_owned)
        };
        let env = environment(config.get("Env"));
        // NVIDIA's own images tell their toolkit in a variable.
        let toolkit = env.get("CUDA_VERSION").cloned();
        Image {
            name: name.to_owned(),
            driver_floor: label("driver-floor"),
            arch_list: label("arch-list").unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
            cuda: label("cuda").or(toolkit),
            env,
            ..Image::default()
        }
    }

    /// A container, and the image that it is of with the variables that it was given.
    fn container(&self, name: &str) -> Result<(Container, Image), Problem> {
        let found = self.first("container", "how the container was started", &["container", "inspect", name]);
        let query = "--query-gpu=index,name,driver_version";
        let inside = ["exec", name, "nvidia-smi", query, "--format=csv,noheader"];
        let inside = self.ask("container-gpus", "which GPUs it sees", &inside);
        let Some(found) = found else {
            if self.source.is_dry() {
                return Ok(Default::default());
            }
            let cure = format!("`{} ps` lists the running ones", self.program);
            return Err(Problem::new(Id::UnknownName, "--container", format!("there is no `{name}`"), cure));
        };
        let host = found.get("HostConfig").cloned().unwrap_or_default();
        let config = found.get("Config").cloned().unwrap_or_default();
        let image = config.get("Image").and_then(Value::as_str).unwrap_or_default();
        let shares = host.get("IpcMode").and_then(Value::as_str).is_some_and(|mode| mode == "host");
        let container = Container {
            name: name.to_owned(),
            shm: host.get("ShmSize").and_then(Value::as_u64).filter(|_| !shares),
            capabilities: capabilities(&host),
            smi: inside.and_then(|ran| in_container(&ran)),
        };
        Ok((container, Image { here: true, ..self.of_config(image, &config) }))
    }
}

/// What `nvidia-smi` said; `None` where the container has no such program.
fn in_container(ran: &Ran) -> Option<Smi> {
    let missing = ran.err.contains("executable file not found") || ran.code == 127;
    (!missing).then(|| answer(ran))
}

/// `"Env": ["A=1", …]`
fn environment(list: Option<&Value>) -> BTreeMap<String, String> {
    let list = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    list.filter_map(|it| it.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// What `--gpus` asked for: `"DeviceRequests": [{"Capabilities": [["gpu", "utility"]]}]`.
fn capabilities(host: &Value) -> Vec<String> {
    let requests = host.get("DeviceRequests").and_then(Value::as_array).into_iter().flatten();
    let sets = requests.filter_map(|request| request.get("Capabilities")?.as_array()).flatten();
    let words = sets.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    words.filter(|word| *word != "gpu").map(str::to_owned).collect()
}
