//! The words of an instruction and the commands of a shell line, each with the line on which it stands.

use super::dockerfile::{Instruction, Line};

/// What ends a command.
const OPERATORS: &[char] = &[';', '|', '&', '(', ')', '`', '\n'];

/// Programs and words of the shell that run what comes after them.
const RUNNERS: &[&str] =
    &["sudo", "env", "exec", "command", "time", "nohup", "!", "if", "then", "else", "do", "{"];

/// A word.
#[derive(Clone, Debug)]
pub struct Word {
    /// Its text without quotes.
    pub text: String,
    /// The line on which it begins.
    pub line: usize,
}

/// A command of a shell line.
#[derive(Debug, Default)]
pub struct Command {
    /// Its words.
    pub words: Vec<Word>,
    /// The operator before it; none at the beginning.
    pub before: Option<char>,
}

impl Command {
    /// Whether one of the words is this.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|w| w.text == word)
    }

    /// Where a program is called: a word that is its name or a path to it.
    pub fn program(&self, names: &[&str]) -> Option<usize> {
        let is = |word: &Word| names.contains(&word.text.rsplit('/').next().unwrap_or_default());
        self.words.iter().position(is)
    }

    /// What is run: the first word that is no option, no `NAME=value` and no program that runs another.
    pub fn head(&self) -> Option<&Word> {
        let runs_another =
            |text: &str| RUNNERS.contains(&text) || text.starts_with('-') || text.contains('=');
        self.words.iter().find(|word| !runs_another(&word.text))
    }

    /// The first word after a program that is no option: the `install` of `apt-get --yes install`.
    pub fn verb(&self, program: usize) -> Option<&Word> {
        self.words.iter().skip(program + 1).find(|word| !word.text.starts_with('-'))
    }
}

/// Keys and values of `ARG`, `ENV` and `LABEL`; a key alone has no value. What quotes hold together is one.
pub fn pairs(instruction: &Instruction, escape: char) -> Vec<(Word, Option<String>)> {
    let commands = split(&instruction.lines, escape, false);
    let words: Vec<Word> = commands.into_iter().flat_map(|command| command.words).collect();
    let pair = |word: &Word| match word.text.split_once('=') {
        Some((key, value)) => (Word { text: key.to_owned(), line: word.line }, Some(value.to_owned())),
        None => (word.clone(), None),
    };
    match words.first() {
        // The old form: `ENV KEY what it is`.
        Some(first) if instruction.word != "ARG" && !first.text.contains('=') => {
            let value = words.iter().skip(1).map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            vec![(first.clone(), Some(value))]
        }
        _ => words.iter().map(pair).collect(),
    }
}

/// The commands of a `RUN`. Quotes hold nothing together, so that `sh -c "…"` hides nothing.
pub fn commands(instruction: &Instruction, escape: char) -> Vec<Command> {
    split(&instruction.lines, escape, true)
}

fn split(lines: &[Line], escape: char, shell: bool) -> Vec<Command> {
    // `RUN ["pip", "install"]` is a command too.
    let exec = shell && lines.iter().any(|line| line.text.contains("[\""));
    let mut splitter = Splitter { shell, exec, ..Splitter::default() };
    for line in lines {
        match line.text.strip_suffix(escape) {
            Some(joined) => splitter.feed(&format!("{joined} "), line.number),
            None => splitter.feed(&format!("{}\n", line.text), line.number),
        }
    }
    splitter.end_command('\n');
    splitter.done
}

/// What was split so far, and what is not whole yet.
#[derive(Default)]
struct Splitter {
    shell: bool,
    exec: bool,
    done: Vec<Command>,
    command: Command,
    word: Option<Word>,
    quote: Option<char>,
}

impl Splitter {
    fn feed(&mut self, text: &str, line: usize) {
        let mut chars = text.chars().peekable();
        let mut last = ' ';
        while let Some(c) = chars.next() {
            let next = chars.peek().copied().unwrap_or(' ');
            // `2>&1` and `&>file` end nothing.
            let redirects = c == '&' && (last == '>' || next == '>');
            match c {
                '\\' if !next.is_whitespace() => self.letter(chars.next().unwrap_or(c), line),
                '"' | '\'' if self.shell => {}
                '"' | '\'' if self.quote.is_none_or(|open| open == c) => {
                    self.quote = if self.quote.is_some() { None } else { Some(c) };
                }
                _ if self.shell && !redirects && OPERATORS.contains(&c) => {
                    // `||`, `&&` and `;;` only part what is before and after them.
                    let twice = c == next && chars.next().is_some();
                    self.end_command(if twice { ';' } else { c });
                }
                '[' | ',' | ']' if self.exec => self.end_word(),
                _ if c.is_whitespace() && self.quote.is_none() => self.end_word(),
                _ => self.letter(c, line),
            }
            last = c;
        }
    }

    fn letter(&mut self, c: char, line: usize) {
        self.word.get_or_insert_with(|| Word { text: String::new(), line }).text.push(c);
    }

    fn end_word(&mut self) {
        self.command.words.extend(self.word.take());
    }

    fn end_command(&mut self, operator: char) {
        self.end_word();
        // Of `; (` and of a pipe at the end of a line, the first operator counts.
        if !self.command.words.is_empty() {
            let next = Command { before: Some(operator), ..Command::default() };
            self.done.push(std::mem::replace(&mut self.command, next));
        }
    }
}

/// The variables that a text refers to: `$NAME` and `${NAME…}`, but not `\$NAME`.
pub fn references(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in text.match_indices('$').filter(|(at, _)| !text[..*at].ends_with('\\')) {
        let rest = &text[at + 1..];
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        if !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) {
            found.push(name);
        }
    }
    found
}

/// Whether a text holds another as a word of its own, capitals or not.
pub fn holds(text: &str, needle: &str) -> bool {
    let (text, needle) = (text.to_ascii_lowercase(), needle.to_ascii_lowercase());
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.match_indices(&needle)
        .any(|(at, _)| !text[..at].ends_with(inside) && !text[at + needle.len()..].starts_with(inside))
}
