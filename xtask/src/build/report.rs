//! A build as a person follows it: on a terminal one moving line, elsewhere a line a step, in the end a table of times.

use super::progress::{Event, Phases, Progress};
use crate::faults::strip_credentials;
use crate::out::{HEARTBEAT, Out};
use indicatif::ProgressBar;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

/// Follows one build.
pub struct Report<'a> {
    out: &'a Out,
    log: File,
    progress: Progress,
    bar: Option<ProgressBar>,
    spoke: Instant,
    tail: Vec<String>,
}

impl Report<'_> {
    /// A report that begins now; every line goes to `log`.
    pub fn new(out: &Out, log: File) -> Report<'_> {
        let bar = out.bar(ProgressBar::new_spinner(), "{spinner} {elapsed} {wide_msg}");
        if let Some(bar) = &bar {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Report { out, log, progress: Progress::new(), bar, spoke: Instant::now(), tail: Vec::new() }
    }

    /// Takes a line of the build.
    pub fn line(&mut self, line: &str) {
        // pip repeats the address of an index with the password that was given in it.
        let line = strip_credentials(line);
        let line = line.as_str();
        // The log is for people; a full disk is reported by what fails because of it.
        writeln!(self.log, "{line}").ok();
        self.tail.push(line.to_owned());
        if self.tail.len() > 200 {
            self.tail.drain(..100);
        }
        let event = self.progress.line(line);
        if self.out.is_verbose() {
            self.out.say(line);
            return;
        }
        match (&self.bar, event) {
            (Some(bar), _) => bar.set_message(self.progress.running().join(" · ")),
            (None, Event::Done(number)) => self.done(number),
            (None, Event::Part(name, seconds)) => {
                self.out.say_at(seconds, &name);
                self.spoke = Instant::now();
            }
            (None, _) if self.spoke.elapsed() > HEARTBEAT => {
                let running = self.progress.running().join(" · ");
                self.out.say_on(format!("still at work: {running}").trim_end_matches(": "));
                self.spoke = Instant::now();
            }
            _ => {}
        }
    }

    fn done(&mut self, number: u32) {
        let Some(step) = self.progress.step(number) else {
            return;
        };
        // What is quick, internal, or told by its parts would only hide the rest.
        let seconds = step.seconds.unwrap_or_default();
        if seconds >= 0.5 && step.name.starts_with('[') && !step.name.starts_with("[internal") {
            self.out.say_at(seconds, &step.name);
            self.spoke = Instant::now();
        }
    }

    /// What the build said of its failure.
    pub fn last_words(&self) -> String {
        failure(&self.tail)
    }

    /// Ends the report with the times: on a terminal those of the slow steps too, which scrolled by elsewhere.
    pub fn finish(self) -> Phases {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            for (name, seconds) in self.progress.slow_steps() {
                self.out.say_at(seconds, name);
            }
        }
        self.progress.phases()
    }
}

/// The words of the step that failed and BuildKit's verdict, without the excerpt of the Dockerfile between them:
/// BuildKit repeats the end of that step's output between two rules of dashes.
fn failure(lines: &[String]) -> String {
    let rules: Vec<usize> = (0..lines.len()).filter(|i| lines[*i] == "------").collect();
    let [.., open, close] = rules[..] else {
        return lines.join("\n");
    };
    let verdict = lines[close..].iter().filter(|line| line.starts_with("ERROR"));
    lines[open + 1..close].iter().chain(verdict).cloned().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_failed_step_are_told_and_not_the_dockerfile() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let text = "#9 0.4 x\n#9 ERROR: process\n------\n > [python 1/1] RUN uv:\n0.4 Hash mismatch\n------\nDockerfile:9\n  9 | RUN uv\nERROR: failed to solve";
        let told = " > [python 1/1] RUN uv:\n0.4 Hash mismatch\nERROR: failed to solve";
        assert_eq!(failure(&lines(text)), told);
        assert_eq!(failure(&lines("ERROR: no daemon")), "ERROR: no daemon");
    }
}
