//! The one place where outside programs start.
//!
//! A command is a value ([`Step`]) before it is run: `--dry-run` prints it, a test compares it, and a double on `PATH`
//! can stand in for its program.

use crate::interrupt::{self, Running};
use crate::problem::{Id, refuse};
use anyhow::{Context, Result};
use serde::Serialize;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use xshell::Shell;

/// The variable that tells which run a process belongs to.
pub const RUN: &str = "XTASK_RUN";

/// The name of this run, where it holds the lock of a state folder.
static NAME: OnceLock<String> = OnceLock::new();

/// Names this run: what it starts from now on carries the name in [`RUN`]. The first name stays.
pub fn name_run(name: &str) {
    NAME.set(name.to_owned()).ok();
}

/// A command with its reason: what would be run, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The program and its arguments. Never a secret: arguments are visible to every process of the host.
    pub argv: Vec<String>,
    /// Variables set on top of the caller's environment.
    pub env: Vec<(String, String)>,
    /// Why it is run, in a few words.
    pub reason: String,
    /// Whether it takes something back, and so is run by an interrupted program too.
    #[serde(skip)]
    takes_back: bool,
}

/// The path of this program, to be started again.
///
/// Errors: the system's, where it does not tell.
pub fn own_program() -> Result<String> {
    Ok(std::env::current_exe()?.display().to_string())
}

/// What a finished program left behind.
#[derive(Clone, Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// The stream that a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Step {
    /// A command and why it is run.
    pub fn new<S: Into<String>>(reason: impl Into<String>, argv: impl IntoIterator<Item = S>) -> Self {
        let argv = argv.into_iter().map(Into::into).collect();
        Step { argv, env: Vec::new(), reason: reason.into(), takes_back: false }
    }

    /// Adds arguments.
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.argv.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable for the program.
    pub fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// The same command, run although this program was interrupted: it takes back what must not stay.
    pub fn taking_back(self) -> Self {
        Step { takes_back: true, ..self }
    }

    /// The program's name.
    pub fn program(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    /// The command as a line that can be pasted into a shell.
    pub fn to_line(&self) -> String {
        let env = self.env.iter().map(|(key, value)| format!("{key}={}", quote(value)));
        env.chain(self.argv.iter().map(|word| quote(word))).collect::<Vec<_>>().join(" ")
    }

    /// The command with its reason above it, as a comment: what a dry run prints.
    pub fn to_script(&self) -> String {
        format!("# {}\n{}", self.reason, self.to_line())
    }

    fn command(&self) -> Result<Command> {
        let program = find(self.program(), &self.env)?;
        let shell = Shell::new()?;
        let cmd =
            shell.cmd(program).args(self.argv.iter().skip(1)).envs(self.env.iter().map(|(k, v)| (k, v)));
        let mut command: Command = cmd.into();
        command.stdin(Stdio::null());
        if let Some(name) = NAME.get() {
            command.env(RUN, name);
        }
        Ok(command)
    }

    fn spawn(&self, command: &mut Command) -> Result<(Child, Running)> {
        if !self.takes_back {
            interrupt::check()?;
        }
        // In a group of its own: what a terminal interrupts is this program, which then ends its children in order.
        let child =
            command.process_group(0).spawn().with_context(|| format!("starting `{}`", self.program()))?;
        let running = Running::new(child.id(), self.takes_back);
        Ok((child, running))
    }

    /// Waits for the end. How a program ended that was made to end tells nothing.
    fn wait(&self, child: &mut Child) -> Result<ExitStatus> {
        let status = child.wait()?;
        if !self.takes_back {
            interrupt::check()?;
        }
        Ok(status)
    }

    /// Runs the program to its end and returns what it printed, whatever its status.
    pub fn output(&self) -> Result<Output> {
        let mut text = (String::new(), String::new());
        let status = self.stream(|stream, line| {
            let to = match stream {
                Stream::Out => &mut text.0,
                Stream::Err => &mut text.1,
            };
            to.push_str(line);
            to.push('\n');
        })?;
        Ok(Output { status, stdout: text.0, stderr: text.1 })
    }

    /// Runs the program with something on its standard input, and returns what it printed: for a few bytes.
    pub fn feed(&self, input: &str) -> Result<Output> {
        use std::io::Write;
        let mut command = self.command()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, _running) = self.spawn(&mut command)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read its input tells so itself.
            stdin.write_all(input.as_bytes()).ok();
        }
        let out = child.wait_with_output()?;
        interrupt::check()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Output { status: out.status, stdout: text(&out.stdout), stderr: text(&out.stderr) })
    }

    /// Runs the program and gives each line to `each` as it comes.
    pub fn stream(&self, mut each: impl FnMut(Stream, &str)) -> Result<ExitStatus> {
        let mut command = self.command()?;
        let (mut child, _running) = self.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
        let (sender, lines) = mpsc::channel();
        let readers = [
            read_lines(Stream::Out, child.stdout.take(), sender.clone()),
            read_lines(Stream::Err, child.stderr.take(), sender),
        ];
        for (stream, line) in lines {
            each(stream, &line);
        }
        for reader in readers.into_iter().flatten() {
            reader.join().ok();
        }
        self.wait(&mut child)
    }

    /// Runs the program and returns its standard output without the last line break; any failure is an error that shows
    /// what the program said.
    pub fn read(&self) -> Result<String> {
        let out = self.output()?;
        if !out.status.success() {
            anyhow::bail!("`{}` ended with {}\n{}", self.to_line(), out.status, tail(&out.stderr, 20));
        }
        Ok(out.stdout.trim_end_matches('\n').to_owned())
    }

    /// Runs the program with the caller's own standard streams, for things a person should see unchanged.
    pub fn passthrough(&self) -> Result<ExitStatus> {
        let (mut child, _running) = self.spawn(&mut self.command()?)?;
        self.wait(&mut child)
    }

    /// Becomes the program, with the caller's own standard streams: signals and exit status are the program's from then
    /// on. Returns only where it cannot be started.
    pub fn become_it(&self) -> Result<()> {
        let error = self.command()?.stdin(Stdio::inherit()).env_remove(RUN).exec();
        Err(error).with_context(|| format!("starting `{}`", self.program()))
    }

    /// Starts a program that outlives this one and belongs to no run, its output going to `log`.
    pub fn daemon(&self, log: std::fs::File) -> Result<Child> {
        interrupt::check()?;
        let mut command = self.command()?;
        command.stdout(log.try_clone()?).stderr(log).env_remove(RUN);
        command.process_group(0).spawn().with_context(|| format!("starting `{}`", self.program()))
    }
}

fn read_lines(
    stream: Stream,
    pipe: Option<impl Read + Send + 'static>,
    sender: mpsc::Sender<(Stream, String)>,
) -> Option<std::thread::JoinHandle<()>> {
    let mut reader = BufReader::new(pipe?);
    Some(std::thread::spawn(move || {
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_end_matches(['\n', '\r']).to_owned();
            if sender.send((stream, line)).is_err() {
                return;
            }
            bytes.clear();
        }
    }))
}

/// Finds a program on the `PATH` that the step sets, or on the caller's.
fn find(program: &str, env: &[(String, String)]) -> Result<PathBuf> {
    let path: Option<OsString> = env
        .iter()
        .rev()
        .find(|(key, _)| key == "PATH")
        .map(|(_, value)| value.into())
        .or_else(|| std::env::var_os("PATH"));
    match which::which_in(program, path, std::env::current_dir()?) {
        Ok(found) => Ok(found),
        Err(_) => refuse(
            Id::Tool,
            format!("program `{program}`"),
            "it is not on PATH",
            format!("install `{program}` and run the same command again"),
        ),
    }
}

/// A word in the form a POSIX shell reads back unchanged.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The last `n` lines of a text.
pub fn tail(text: &str, n: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_pasted() {
        let step = Step::new("why", ["echo", "a b", "it's", "--x=1"]).env("K", "$v");
        assert_eq!(step.to_line(), r"K='$v' echo 'a b' 'it'\''s' --x=1");
        let pasted = Step::new("why", ["sh", "-c", &format!("{}; echo \"$K\"", "echo 'a b'")]);
        assert_eq!(pasted.env("K", "v").read().unwrap(), "a b\nv");
    }

    #[test]
    fn both_streams_and_the_status_come_back() {
        let out = Step::new("t", ["sh", "-c", "echo hello; echo e >&2; exit 3"]).output().unwrap();
        assert_eq!(
            (out.stdout.as_str(), out.stderr.as_str(), out.status.code()),
            ("hello\n", "e\n", Some(3))
        );
    }

    #[test]
    fn a_missing_program_is_a_refusal_with_a_way_out() {
        let error = Step::new("t", ["no-such-program"]).read().unwrap_err();
        assert!(error.to_string().contains("E_TOOL"), "{error}");
    }
}
