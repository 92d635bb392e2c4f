//! BuildKit's plain progress, read into steps and times.
//!
//! `--progress=plain` is the one form that every buildx prints: `#12 [torch 1/1] RUN …`, `#12 3.4 text`, `#12 DONE 5.6s`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a line told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A step was named for the first time.
    Started(u32),
    /// A step is done.
    Done(u32),
    /// A step failed.
    Failed(u32),
    /// A part of a step is done: its name and seconds.
    Part(String, f64),
    /// Anything else.
    Text,
}

/// One step of a build.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vertex {
    /// `[torch 1/1] RUN …`, shortened.
    pub name: String,
    /// Seconds it took; none while it runs.
    pub seconds: Option<f64>,
    /// Taken from the cache.
    pub cached: bool,
    /// What it stands on is being unpacked.
    pub extracts: bool,
}

/// Where the time went, as spans of the wall clock: what runs in parallel is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Until the last wheel was there.
    pub fetch: f64,
    /// Until the last installation was done.
    pub install: f64,
    /// Unpacking what the steps stand on.
    #[serde(default)]
    pub extract: f64,
    /// Joining the layers.
    pub copy: f64,
    /// Diff and compression.
    pub export: f64,
    /// Into the engine's store.
    pub unpack: f64,
    /// To a registry, where the build itself sends it there.
    pub push: f64,
}

impl Vertex {
    /// `torch` of `[torch 1/1] RUN …`.
    fn stage(&self) -> &str {
        self.name.trim_start_matches('[').split([' ', ']']).next().unwrap_or_default()
    }
}

impl std::ops::AddAssign for Phases {
    fn add_assign(&mut self, other: Phases) {
        self.fetch += other.fetch;
        self.install += other.install;
        self.extract += other.extract;
        self.copy += other.copy;
        self.export += other.export;
        self.unpack += other.unpack;
        self.push += other.push;
    }
}

/// A build as it is told line by line.
#[derive(Debug)]
pub struct Progress {
    start: Instant,
    steps: BTreeMap<u32, Vertex>,
    parts: Vec<(String, f64)>,
    last_fetch: Duration,
    last_install: Duration,
    export_start: Option<Duration>,
}

impl Progress {
    /// A build that begins now.
    pub fn new() -> Progress {
        Progress {
            start: Instant::now(),
            steps: BTreeMap::new(),
            parts: Vec::new(),
            last_fetch: Duration::ZERO,
            last_install: Duration::ZERO,
            export_start: None,
        }
    }

    /// Takes a line as it was printed just now.
    pub fn line(&mut self, line: &str) -> Event {
        let now = self.start.elapsed();
        let Some((number, rest)) = split(line) else {
            return Event::Text;
        };
        if let Some(event) = self.ended(number, rest, now) {
            return event;
        }
        if let Some(digest) = rest.strip_prefix("extracting sha256:") {
            return self.extracts(number, digest);
        }
        if let Some((part, seconds)) = part(rest).filter(|(name, _)| is_export(name)) {
            self.parts.push((part.to_owned(), seconds));
            return Event::Part(part.to_owned(), seconds);
        }
        if rest.contains(" Prepared ") && rest.contains(" package") {
            self.last_fetch = now;
        }
        if self.steps.contains_key(&number) || !starts_a_step(rest) {
            return Event::Text;
        }
        if rest.contains("exporting to ") {
            self.export_start = Some(now);
        }
        self.steps.insert(number, Vertex { name: shorten(rest), ..Vertex::default() });
        Event::Started(number)
    }

    /// A layer below a step: BuildKit unpacks it late, and counts it to the step that needs it first.
    fn extracts(&mut self, number: u32, digest: &str) -> Event {
        let ended = part(digest);
        if let Some(step) = self.steps.get_mut(&number) {
            step.extracts = ended.is_none();
        }
        match ended {
            Some((digest, seconds)) => {
                let name = format!("{EXTRACT} {}", digest.get(..12).unwrap_or(digest));
                // Every step that waits for it tells it.
                if self.parts.iter().any(|(part, _)| *part == name) {
                    return Event::Text;
                }
                self.parts.push((name.clone(), seconds));
                Event::Part(name, seconds)
            }
            None => Event::Text,
        }
    }

    fn ended(&mut self, number: u32, rest: &str, now: Duration) -> Option<Event> {
        let step = self.steps.get_mut(&number)?;
        if rest == "CACHED" {
            step.cached = true;
            step.seconds = Some(0.0);
            return Some(Event::Done(number));
        }
        if rest.starts_with("ERROR") {
            return Some(Event::Failed(number));
        }
        let seconds = rest.strip_prefix("DONE ")?.strip_suffix('s')?.parse().ok()?;
        // It is told again after every layer that was unpacked for it.
        if step.seconds.replace(seconds).is_some() {
            return Some(Event::Text);
        }
        if step.name.contains("pip install") {
            self.last_install = now;
        }
        Some(Event::Done(number))
    }

    /// A step by its number.
    pub fn step(&self, number: u32) -> Option<&Vertex> {
        self.steps.get(&number)
    }

    /// The stages that run now.
    pub fn running(&self) -> Vec<&str> {
        let running = self.steps.values().filter(|step| step.seconds.is_none() || step.extracts);
        running.map(|step| if step.extracts { EXTRACT } else { step.stage() }).collect()
    }

    /// Steps that took a second or longer, in BuildKit's order.
    pub fn slow_steps(&self) -> impl Iterator<Item = (&str, f64)> {
        let timed = self.steps.values().filter_map(|step| Some((step.name.as_str(), step.seconds?)));
        timed.filter(|(_, seconds)| *seconds >= 1.0)
    }

    /// Where the time went.
    pub fn phases(&self) -> Phases {
        // A sum of nothing is -0.
        let named = |name: &str| {
            let parts = self.parts.iter().filter(|(part, _)| part.starts_with(name));
            parts.fold(0.0, |sum, (_, seconds)| sum + seconds)
        };
        let installed = self.last_install.max(self.last_fetch);
        let export = self.export_start.unwrap_or(installed).max(installed);
        let (extract, joined) = (named(EXTRACT), (export - installed).as_secs_f64());
        Phases {
            fetch: self.last_fetch.as_secs_f64(),
            install: (installed - self.last_fetch).as_secs_f64(),
            extract,
            copy: (joined - extract).max(0.0),
            export: named("exporting layers"),
            unpack: named("unpacking to "),
            push: named("pushing"),
        }
    }
}

/// What unpacking a layer below a step is called.
const EXTRACT: &str = "unpacking layer";

/// `#12 rest` → 12 and the rest.
fn split(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.strip_prefix('#')?.split_once(' ')?;
    Some((number.parse().ok()?, rest))
}

/// `exporting layers 42.3s done` → its name and seconds.
fn part(rest: &str) -> Option<(&str, f64)> {
    let (name, seconds) = rest.strip_suffix("s done")?.rsplit_once(' ')?;
    Some((name, seconds.parse().ok()?))
}

/// A step's output begins with its seconds; its name begins with a bracket or a word.
fn starts_a_step(rest: &str) -> bool {
    rest.starts_with('[') || rest.starts_with("exporting") || rest.starts_with("resolve")
}

/// The parts of an export that take long.
fn is_export(name: &str) -> bool {
    name == "exporting layers" || name.starts_with("unpacking to ") || name.starts_with("pushing ")
}

/// Mount options say nothing to a person who waits, nor does the target, which a shared stage has by chance.
fn shorten(name: &str) -> String {
    let mut words: Vec<&str> = name.split_whitespace().filter(|word| !word.starts_with("--mount")).collect();
    if words.len() > 2 && words[0].starts_with('[') && !words[0].ends_with(']') && !words[1].contains('/') {
        words.remove(0);
        let text = format!("[{}", words.join(" "));
        return cut(text);
    }
    cut(words.join(" "))
}

fn cut(text: String) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_real_build_are_understood() {
        let mut progress = Progress::new();
        let lines = [
            ("#1 [internal] load local bake definitions", Event::Started(1)),
            ("#1 DONE 0.0s", Event::Done(1)),
            ("#19 [torch 1/1] RUN --mount=type=secret,id=ca uv pip install", Event::Started(19)),
            ("#19 51.95 Prepared 1 package in 50.53s", Event::Text),
            ("#19 ...", Event::Text),
            ("#19 [torch 1/1] RUN --mount=type=secret,id=ca uv pip install", Event::Text),
            ("#19 DONE 77.5s", Event::Done(19)),
            ("#20 [stage-13 3/13] COPY --link --from=torch /opt/venv /opt/venv", Event::Started(20)),
            ("#20 CACHED", Event::Done(20)),
            ("#20 extracting sha256:f11480aa9a7cd52b346f", Event::Text),
            (
                "#20 extracting sha256:f11480aa9a7cd52b346f 9.4s done",
                Event::Part("unpacking layer f11480aa9a7c".to_owned(), 9.4),
            ),
            ("#20 DONE 9.5s", Event::Text),
            ("#21 extracting sha256:f11480aa9a7cd52b346f 9.4s done", Event::Text),
            ("#20 extracting sha256:33f4e8a5bcd6a9c8eb63", Event::Text),
            ("#21 [runtime-2-15 python 1/1] RUN umask 002", Event::Started(21)),
            ("#32 [runtime-2-15] exporting to image", Event::Started(32)),
            ("#32 exporting layers", Event::Text),
            ("#32 exporting layers 42.3s done", Event::Part("exporting layers".to_owned(), 42.3)),
            ("#32 unpacking to x 38.9s done", Event::Part("unpacking to x".to_owned(), 38.9)),
            ("#32 ERROR: no space left on device", Event::Failed(32)),
            ("ERROR: failed to solve", Event::Text),
        ];
        for (line, event) in lines {
            assert_eq!(progress.line(line), event, "{line}");
        }
        let torch = progress.step(19).unwrap();
        assert_eq!((torch.name.as_str(), torch.seconds), ("[torch 1/1] RUN uv pip install", Some(77.5)));
        assert_eq!(progress.step(21).unwrap().name, "[python 1/1] RUN umask 002");
        assert_eq!(progress.running(), [EXTRACT, "python", "runtime-2-15"]);
        assert!(progress.step(20).unwrap().cached);
        let phases = progress.phases();
        assert_eq!((phases.extract, phases.export, phases.unpack), (9.4, 42.3, 38.9));
        assert!(progress.export_start.is_some());
    }
}
