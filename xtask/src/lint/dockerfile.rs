//! A Dockerfile as the rules see it: stages of instructions, each line with its number, comments left out.

use parse_dockerfile::{Flag as ParsedFlag, HereDoc, Instruction as Parsed, Source};
use std::ops::Range;

/// Everything in one file.
#[derive(Debug)]
pub struct Dockerfile {
    /// What `# syntax=` names, with its line.
    pub syntax: Option<(usize, String)>,
    /// The character that joins lines.
    pub escape: char,
    /// What stands before the first stage: `ARG` and nothing else.
    pub globals: Vec<Instruction>,
    /// The stages in their order.
    pub stages: Vec<Stage>,
}

/// A stage; its first instruction is the `FROM`.
#[derive(Debug)]
pub struct Stage {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it stands on: a stage, a named context or an image.
    pub base: String,
    /// The stage of this file that it stands on.
    pub parent: Option<usize>,
    /// Everything in it.
    pub instructions: Vec<Instruction>,
}

/// An instruction; `ONBUILD` counts as what it holds.
#[derive(Debug)]
pub struct Instruction {
    /// `FROM`, `RUN`, …
    pub word: &'static str,
    /// Where it begins.
    pub line: usize,
    /// `--mount=…` and the like.
    pub flags: Vec<Flag>,
    /// Everything after the word, flags and here-documents included, without comments and empty lines.
    pub lines: Vec<Line>,
}

/// A flag of an instruction.
#[derive(Debug)]
pub struct Flag {
    /// Its name without dashes.
    pub name: String,
    /// Its value; empty where it has none.
    pub value: String,
    /// Where it stands.
    pub line: usize,
}

/// A line of an instruction.
#[derive(Debug)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: usize,
    /// Its text.
    pub text: String,
    /// A line of a copied here-document in quotes: BuildKit takes it as it is.
    pub literal: bool,
}

impl Dockerfile {
    /// Parses a text.
    ///
    /// Errors: the line and what is wrong there.
    pub fn parse(text: &str) -> Result<Dockerfile, (usize, String)> {
        let parsed =
            parse_dockerfile::parse(text).map_err(|error| (error.line().max(1), error.to_string()))?;
        let starts: Vec<usize> = parsed.instructions.iter().map(|i| parts(i).1).collect();
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let directives = &parsed.parser_directives;
        let mut file = Dockerfile {
            syntax: directives
                .syntax
                .as_ref()
                .map(|d| (line_at(text, d.span().start), d.value.value.to_owned())),
            escape: directives.escape.as_ref().map_or('\\', |directive| directive.value.value),
            globals: Vec::new(),
            stages: Vec::new(),
        };
        for (instruction, end) in parsed.instructions.iter().zip(ends) {
            if let Parsed::From(from) = instruction {
                let base = from.image.value.to_string();
                file.stages.push(Stage {
                    name: from.as_.as_ref().map(|(_, name)| name.value.to_string()),
                    parent: file.stage(&base),
                    base,
                    instructions: Vec::new(),
                });
            }
            let instruction = Instruction::new(text, instruction, end);
            match file.stages.last_mut() {
                Some(stage) => stage.instructions.push(instruction),
                None => file.globals.push(instruction),
            }
        }
        Ok(file)
    }

    /// The stage of a name among those parsed so far. BuildKit does not tell capitals from small letters.
    pub fn stage(&self, name: &str) -> Option<usize> {
        let is = |stage: &Stage| stage.name.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(name));
        self.stages.iter().position(is)
    }

    /// All instructions in their order.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.globals.iter().chain(self.stages.iter().flat_map(|stage| &stage.instructions))
    }
}

impl Instruction {
    fn new(text: &str, parsed: &Parsed, end: usize) -> Instruction {
        let (word, start, flags) = parts(parsed);
        let start_line = line_at(text, start);
        let literal = literals(parsed);
        let mut offset = start;
        let mut lines = Vec::new();
        for (number, line) in (start_line..).zip(text[start..end].split_inclusive('\n')) {
            let here = line.trim();
            if !here.is_empty() && (number == start_line || !here.starts_with('#')) {
                let literal = literal.iter().any(|span| span.contains(&offset));
                lines.push(Line { number, text: line.trim_end().to_owned(), literal });
            }
            offset += line.len();
        }
        if let Some(first) = lines.first_mut() {
            first.text = first.text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest).to_owned();
        }
        let flags = flags.iter().map(|flag| Flag {
            name: flag.name.value.to_string(),
            value: flag.value.as_ref().map(|value| value.value.to_string()).unwrap_or_default(),
            line: line_at(text, flag.span().start),
        });
        Instruction { word, line: start_line, flags: flags.collect(), lines }
    }
}

/// An instruction's word, where it begins, and its flags.
fn parts<'a, 'b>(parsed: &'b Parsed<'a>) -> (&'static str, usize, &'b [ParsedFlag<'a>]) {
    match parsed {
        Parsed::Add(i) => ("ADD", i.add.span.start, &i.options),
        Parsed::Arg(i) => ("ARG", i.arg.span.start, &[]),
        Parsed::Cmd(i) => ("CMD", i.cmd.span.start, &[]),
        Parsed::Copy(i) => ("COPY", i.copy.span.start, &i.options),
        Parsed::Entrypoint(i) => ("ENTRYPOINT", i.entrypoint.span.start, &[]),
        Parsed::Env(i) => ("ENV", i.env.span.start, &[]),
        Parsed::Expose(i) => ("EXPOSE", i.expose.span.start, &[]),
        Parsed::From(i) => ("FROM", i.from.span.start, &i.options),
        Parsed::Healthcheck(i) => ("HEALTHCHECK", i.healthcheck.span.start, &i.options),
        Parsed::Label(i) => ("LABEL", i.label.span.start, &[]),
        Parsed::Maintainer(i) => ("MAINTAINER", i.maintainer.span.start, &[]),
        Parsed::Onbuild(i) => parts(&i.instruction),
        Parsed::Run(i) => ("RUN", i.run.span.start, &i.options),
        Parsed::Shell(i) => ("SHELL", i.shell.span.start, &[]),
        Parsed::Stopsignal(i) => ("STOPSIGNAL", i.stopsignal.span.start, &[]),
        Parsed::User(i) => ("USER", i.user.span.start, &[]),
        Parsed::Volume(i) => ("VOLUME", i.volume.span.start, &[]),
        Parsed::Workdir(i) => ("WORKDIR", i.workdir.span.start, &[]),
        // The enum may grow with Dockerfiles; what is new has no rule yet.
        _ => ("", 0, &[]),
    }
}

/// The here-documents that are copied as they are. Those of a `RUN` are the shell's, which has the variables anyway.
fn literals(parsed: &Parsed) -> Vec<Range<usize>> {
    let sources = match parsed {
        Parsed::Add(i) => &i.src,
        Parsed::Copy(i) => &i.src,
        Parsed::Onbuild(i) => return literals(&i.instruction),
        _ => return Vec::new(),
    };
    let literal = |source: &Source| match source {
        Source::HereDoc(HereDoc { span, expand: false, .. }) => Some(span.clone()),
        _ => None,
    };
    sources.iter().filter_map(literal).collect()
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text[..offset].matches('\n').count()
}
