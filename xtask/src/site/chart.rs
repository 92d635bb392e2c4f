//! Numbers to places in a drawing. The templates draw; here is only arithmetic.

use crate::out::size;
use serde::Serialize;
use std::time::{Duration, UNIX_EPOCH};

/// A rectangle of a treemap.
#[derive(Debug, Serialize)]
pub struct Tile {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    label: String,
    /// Its bytes in words.
    size: String,
    /// Which of the colours.
    color: usize,
    /// As much of the label as fits into it.
    short: Option<String>,
}

/// A treemap as wide and high as this: the area of a tile is its share of the bytes.
///
/// Rows are laid along the shorter side of what is free as long as that makes tiles squarer (Bruls, Huizing and
/// van Wijk, Squarified Treemaps, 2000). `items` are the biggest first.
pub fn treemap(items: &[(String, u64)], (width, height): (f64, f64)) -> Vec<Tile> {
    let total: u64 = items.iter().map(|(_, bytes)| bytes).sum();
    let scale = width * height / (total.max(1) as f64);
    let (mut x, mut y, mut w, mut h) = (0.0, 0.0, width, height);
    let (mut tiles, mut left) = (Vec::new(), items);
    while !left.is_empty() {
        let side = w.min(h);
        let areas: Vec<f64> = left.iter().map(|(_, bytes)| *bytes as f64 * scale).collect();
        let mut n = 1;
        while n < areas.len() && worst(&areas[..n + 1], side) <= worst(&areas[..n], side) {
            n += 1;
        }
        let depth = areas[..n].iter().sum::<f64>() / side;
        let mut along = 0.0;
        for ((label, bytes), area) in left[..n].iter().zip(&areas) {
            let length = area / depth;
            let (tx, ty, tw, th) =
                if w >= h { (x, y + along, depth, length) } else { (x + along, y, length, depth) };
            along += length;
            let short = if th >= 42.0 { shorten(label, tw) } else { None };
            let (label, size, color) = (label.clone(), size(*bytes), tiles.len() % COLORS);
            tiles.push(Tile { x: tx, y: ty, width: tw, height: th, label, size, color, short });
        }
        if w >= h {
            (x, w) = (x + depth, w - depth)
        } else {
            (y, h) = (y + depth, h - depth)
        }
        left = &left[n..];
    }
    tiles
}

/// As much of a label as fits into a tile of this width; `None` where that would not tell anything.
fn shorten(label: &str, width: f64) -> Option<String> {
    let room = ((width - 16.0) / 7.5) as usize;
    match label.chars().count() {
        _ if room < 7 => None,
        length if length <= room => Some(label.to_owned()),
        _ => Some(label.chars().take(room - 1).collect::<String>() + "…"),
    }
}

/// How many colours the style sheet has for tiles.
const COLORS: usize = 6;

/// The worst ratio of the sides of tiles in one row.
fn worst(areas: &[f64], side: f64) -> f64 {
    let depth = areas.iter().sum::<f64>() / side;
    let ratio = |area: &f64| (area / depth / depth).max(depth * depth / area);
    areas.iter().map(ratio).fold(0.0, f64::max)
}

/// A bar and the mark that it must not pass, in percent of the longest.
#[derive(Debug, Serialize)]
pub struct Bar {
    label: String,
    size: String,
    /// What is allowed, in words.
    budget: Option<String>,
    width: f64,
    mark: Option<f64>,
    over: bool,
}

/// Bars on one scale, in the order given: a label, bytes, and the bytes that are allowed.
pub fn bars(items: &[(String, u64, Option<u64>)]) -> Vec<Bar> {
    let most = items.iter().flat_map(|(_, bytes, allowed)| [Some(*bytes), *allowed]).flatten().max();
    let percent = |bytes: u64| 100.0 * bytes as f64 / most.unwrap_or(1).max(1) as f64;
    let bar = |(label, bytes, allowed): &(String, u64, Option<u64>)| Bar {
        label: label.clone(),
        size: size(*bytes),
        budget: allowed.map(size),
        width: percent(*bytes),
        mark: allowed.map(percent),
        over: allowed.is_some_and(|allowed| *bytes > allowed),
    };
    items.iter().map(bar).collect()
}

/// A line over time, in a square of 100: its dots, and the path through them.
#[derive(Debug, Serialize)]
pub struct Line {
    /// What it is about.
    title: &'static str,
    /// `x,y` of every dot, as `points` of a polyline has it.
    points: String,
    dots: Vec<Dot>,
    /// The value at the top of the drawing, in words.
    top: String,
}

/// One dot of a line.
#[derive(Debug, Serialize)]
struct Dot {
    x: f64,
    y: f64,
    /// The value, in words.
    value: String,
    /// The day, as RFC 3339.
    day: String,
}

/// A line from zero up, by the seconds since 1970 and a value that `say` puts into words; `None` for fewer than two.
pub fn line(title: &'static str, values: &[(u64, f64)], say: fn(f64) -> String) -> Option<Line> {
    let (first, last) = (values.first()?.0, values.last()?.0);
    if last <= first {
        return None;
    }
    let top = values.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let dot = |(at, value): &(u64, f64)| Dot {
        x: 100.0 * (at - first) as f64 / (last - first) as f64,
        y: 100.0 * (1.0 - value / top),
        value: say(*value),
        day: humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(*at)).to_string()[..10]
            .to_owned(),
    };
    let dots: Vec<Dot> = values.iter().map(dot).collect();
    let points: Vec<String> = dots.iter().map(|dot| format!("{:.2},{:.2}", dot.x, dot.y)).collect();
    Some(Line { title, points: points.join(" "), dots, top: say(top) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_the_drawing_by_their_bytes_and_none_lies_on_another() {
        let sizes = [516, 480, 300, 120, 119, 60, 33, 8, 2, 1];
        let items: Vec<(String, u64)> = sizes.iter().map(|bytes| (format!("l{bytes}"), *bytes)).collect();
        let tiles = treemap(&items, (960.0, 400.0));
        let total: u64 = sizes.iter().sum();
        for (tile, bytes) in tiles.iter().zip(sizes) {
            let share = tile.width * tile.height / (960.0 * 400.0);
            assert!((share - bytes as f64 / total as f64).abs() < 1e-9, "{tile:?}");
            assert!(tile.x >= 0.0 && tile.x + tile.width <= 960.0 + 1e-6, "{tile:?}");
            assert!(tile.y >= 0.0 && tile.y + tile.height <= 400.0 + 1e-6, "{tile:?}");
        }
        let apart = |a: &Tile, b: &Tile| {
            let e = 1e-6;
            a.x + a.width <= b.x + e
                || b.x + b.width <= a.x + e
                || a.y + a.height <= b.y + e
                || b.y + b.height <= a.y + e
        };
        for (i, a) in tiles.iter().enumerate() {
            assert!(tiles[i + 1..].iter().all(|b| apart(a, b)), "{a:?}");
        }
        let ratio = |tile: &Tile| (tile.width / tile.height).max(tile.height / tile.width);
        assert!(tiles[..5].iter().all(|tile| ratio(tile) < 3.0), "{tiles:#?}");
        assert_eq!(shorten("nvidia-cublas", 120.0).as_deref(), Some("nvidia-cublas"));
        assert_eq!(shorten("nvidia-cublas", 80.0).as_deref(), Some("nvidia-…"));
        assert_eq!(shorten("nvidia-cublas", 60.0), None);
        assert!(treemap(&[], (960.0, 400.0)).is_empty());
    }

    #[test]
    fn a_bar_that_passes_its_line_is_over() {
        let bars = bars(&[
            ("a".to_owned(), 90, Some(100)),
            ("b".to_owned(), 200, Some(100)),
            ("c".to_owned(), 5, None),
        ]);
        assert!(!bars[0].over && bars[1].over && !bars[2].over);
        assert_eq!((bars[0].width, bars[1].width), (45.0, 100.0));
        assert_eq!((bars[0].mark, bars[1].mark, bars[2].mark), (Some(50.0), Some(50.0), None));
    }

    #[test]
    fn a_line_needs_two_moments() {
        let line = |values: &[(u64, f64)]| line("Size", values, |value| format!("{value} GB"));
        assert!(line(&[(1, 5.0)]).is_none() && line(&[(1, 5.0), (1, 6.0)]).is_none());
        let line = line(&[(0, 5.0), (86400, 10.0), (172_800, 0.0)]).unwrap();
        assert_eq!(line.points, "0.00,50.00 50.00,0.00 100.00,100.00");
        assert_eq!((line.dots[1].day.as_str(), line.dots[0].value.as_str()), ("1970-01-02", "5 GB"));
        assert_eq!(line.top, "10 GB");
    }
}
