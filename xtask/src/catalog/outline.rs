//! Where every field of a YAML text stands, and what its parser would silently swallow: duplicate keys, and versions
//! written as numbers.
//!
//! `serde` gives types but no positions once a value is parsed; this reads the parser's events once beside it.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::collections::BTreeMap;
use std::path::Path;

/// Positions of the fields of one YAML text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline {
    fields: BTreeMap<Vec<String>, Field>,
    /// Keys that stand twice in one map: the path and the position of the second.
    pub duplicates: Vec<(Vec<String>, Position)>,
}

/// Line and column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub line: usize,
    pub column: usize,
}

/// One field: where its key and its value stand, and the value's text if it is a scalar.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub at: Position,
    /// The scalar's text and whether it was written without quotes.
    pub scalar: Option<(String, bool)>,
    /// Whether the field's own key was written without quotes.
    pub plain_key: bool,
}

enum Frame {
    Map { key: Option<(String, Position, bool)> },
    List { next: usize },
}

impl Outline {
    /// Reads a text; `Err` is the parser's own message with its position.
    pub fn read(text: &str) -> Result<Outline, (Position, String)> {
        let mut outline = Outline::default();
        let mut frames: Vec<Frame> = Vec::new();
        let mut path: Vec<String> = Vec::new();
        for event in Parser::new_from_str(text) {
            let (event, span) = event
                .map_err(|e| (Position::new(e.marker().line(), e.marker().col()), e.info().to_owned()))?;
            let at = Position::of(&span);
            match event {
                Event::Scalar(value, style, ..) => {
                    let plain = style == ScalarStyle::Plain;
                    if let Some(Frame::Map { key: key @ None }) = frames.last_mut() {
                        *key = Some((value.to_string(), at, plain));
                    } else {
                        outline.enter(&mut frames, &mut path, at, Some((value.to_string(), plain)));
                        path.pop();
                    }
                }
                Event::MappingStart(..) => {
                    outline.enter(&mut frames, &mut path, at, None);
                    frames.push(Frame::Map { key: None });
                }
                Event::SequenceStart(..) => {
                    outline.enter(&mut frames, &mut path, at, None);
                    frames.push(Frame::List { next: 0 });
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    frames.pop();
                    path.pop();
                }
                _ => {}
            }
        }
        Ok(outline)
    }

    /// Notes the value that begins at `at` and makes it the current path.
    fn enter(
        &mut self,
        frames: &mut [Frame],
        path: &mut Vec<String>,
        at: Position,
        scalar: Option<(String, bool)>,
    ) {
        let (name, at, plain_key) = match frames.last_mut() {
            None => (String::new(), at, false),
            Some(Frame::List { next }) => {
                *next += 1;
                ((*next - 1).to_string(), at, false)
            }
            Some(Frame::Map { key }) => {
                let (name, key_at, plain) = key.take().unwrap_or((String::new(), at, false));
                // A scalar is shown where it stands, anything bigger where its key stands.
                (name, if scalar.is_some() { at } else { key_at }, plain)
            }
        };
        path.push(name);
        let field = Field { at, scalar, plain_key };
        if self.fields.insert(path[1..].to_vec(), field).is_some() {
            self.duplicates.push((path[1..].to_vec(), at));
        }
    }

    /// Every field with its path, in the order of the paths.
    pub fn fields(&self) -> impl Iterator<Item = (&Vec<String>, &Field)> {
        self.fields.iter()
    }

    /// The position of a field, or of the nearest field around it that the text has.
    pub fn at(&self, path: &[&str]) -> Position {
        let mut path: Vec<String> = path.iter().map(|s| (*s).to_owned()).collect();
        loop {
            if let Some(field) = self.fields.get(&path) {
                return field.at;
            }
            if path.pop().is_none() {
                return Position { line: 1, column: 1 };
            }
        }
    }

    /// `variants.yaml:12:11: releases."2.9".cuda`
    pub fn place(&self, file: &Path, path: &[&str]) -> String {
        place(file, self.at(path), path)
    }
}

/// `variants.yaml:12:11: releases."2.9".cuda`
pub(crate) fn place(file: &Path, at: Position, path: &[&str]) -> String {
    let position = format!("{}:{}:{}", file.display(), at.line, at.column);
    let dotted: Vec<String> = path
        .iter()
        .map(|name| match name.contains('.') {
            true => format!("\"{name}\""),
            false => (*name).to_owned(),
        })
        .collect();
    if dotted.is_empty() { position } else { format!("{position}: {}", dotted.join(".")) }
}

impl Position {
    /// saphyr counts lines from 1 and columns from 0.
    fn new(line: usize, column: usize) -> Position {
        Position { line, column: column + 1 }
    }

    fn of(span: &Span) -> Position {
        Position::new(span.start.line(), span.start.col())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: 1\nb:\n  c: [x, 'y']\n  \"2.9\": {d: 2.10}\nb: twice\n";

    #[test]
    fn positions_count_from_one() {
        let outline = Outline::read(TEXT).unwrap();
        let at = |path: &[&str]| {
            let p = outline.at(path);
            (p.line, p.column)
        };
        assert_eq!(at(&["a"]), (1, 4));
        assert_eq!(at(&["b", "c", "1"]), (3, 10));
        assert_eq!(at(&["b", "2.9", "d"]), (4, 14));
        assert_eq!(at(&["b", "2.9", "missing"]), (4, 3));
        assert_eq!(outline.place(Path::new("v.yaml"), &["b", "2.9", "d"]), "v.yaml:4:14: b.\"2.9\".d");
    }

    #[test]
    fn duplicates_are_found_with_the_second_position() {
        let outline = Outline::read(TEXT).unwrap();
        let found: Vec<_> = outline.duplicates.iter().map(|(p, at)| (p.join("."), at.line)).collect();
        assert_eq!(found, [("b".to_owned(), 5)]);
    }

    #[test]
    fn broken_yaml_has_a_position() {
        let (at, message) = Outline::read("a: [1,\nb: }").unwrap_err();
        assert!(at.line >= 1 && !message.is_empty());
    }
}
