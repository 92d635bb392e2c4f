//! Numbers to places in a drawing. The templates draw; here is only arithmetic.

use serde::Serialize;

/// Width of every drawing, in its own units.
const WIDTH: f64 = 960.0;

/// A rectangle of a treemap.
#[derive(Debug, Serialize)]
pub struct Tile {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    label: String,
    bytes: u64,
    /// Which of the colours.
    color: usize,
    /// Whether a label fits into it.
    roomy: bool,
}

/// A treemap of a fixed height: the area of a tile is its share of the bytes.
///
/// Rows are laid along the shorter side of what is free as long as that makes tiles squarer (Bruls, Huizing and
/// van Wijk, Squarified Treemaps, 2000). `items` are the biggest first.
pub fn treemap(items: &[(String, u64)], height: f64) -> Vec<Tile> {
    let total: u64 = items.iter().map(|(_, bytes)| bytes).sum();
    let scale = WIDTH * height / (total.max(1) as f64);
    let (mut x, mut y, mut w, mut h) = (0.0, 0.0, WIDTH, height);
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
            let roomy = th >= 36.0 && tw >= 8.0 * label.chars().count().max(8) as f64;
            let (label, color) = (label.clone(), tiles.len() % COLORS);
            tiles.push(Tile { x: tx, y: ty, width: tw, height: th, label, bytes: *bytes, color, roomy });
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

/// How many colours the style sheet has for tiles.
const COLORS: usize = 6;

/// The worst ratio of the sides of tiles in one row.
fn worst(areas: &[f64], side: f64) -> f64 {
    let depth = areas.iter().sum::<f64>() / side;
    let ratio = |area: &f64| (area / depth / depth).max(depth * depth / area);
    areas.iter().map(ratio).fold(0.0, f64::max)
}

/// A bar of a chart and the line that it must not pass.
#[derive(Debug, Serialize)]
pub struct Bar {
    label: String,
    bytes: u64,
    allowed: Option<u64>,
    y: f64,
    width: f64,
    limit: Option<f64>,
    over: bool,
}

/// Space that labels take on the left of bars, and the height of one bar with its space.
const LABELS: f64 = 110.0;
const STEP: f64 = 34.0;

/// Bars on one scale, in the order given: a label, bytes, and the bytes that are allowed.
pub fn bars(items: &[(String, u64, Option<u64>)]) -> Vec<Bar> {
    let most = items.iter().flat_map(|(_, bytes, allowed)| [Some(*bytes), *allowed]).flatten().max();
    let scale = (WIDTH - LABELS - 10.0) / (most.unwrap_or(1).max(1) as f64);
    let bar = |(i, (label, bytes, allowed)): (usize, &(String, u64, Option<u64>))| Bar {
        label: label.clone(),
        bytes: *bytes,
        allowed: *allowed,
        y: i as f64 * STEP,
        width: *bytes as f64 * scale,
        limit: allowed.map(|allowed| LABELS + allowed as f64 * scale),
        over: allowed.is_some_and(|allowed| *bytes > allowed),
    };
    items.iter().enumerate().map(bar).collect()
}

/// A line over time: its dots, and the path through them.
#[derive(Debug, Serialize)]
pub struct Line {
    /// `x,y` of every dot, as `points` of a polyline has it.
    points: String,
    dots: Vec<Dot>,
    /// The value at the top of the drawing.
    top: f64,
}

/// One dot of a line.
#[derive(Debug, Serialize)]
struct Dot {
    x: f64,
    y: f64,
    /// The value.
    value: f64,
    /// Seconds since 1970.
    at: u64,
}

/// A line from zero up in a drawing of a fixed height; `None` for fewer than two values.
pub fn line(values: &[(u64, f64)], height: f64) -> Option<Line> {
    let (first, last) = (values.first()?.0, values.last()?.0);
    if last <= first {
        return None;
    }
    let top = values.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    // Room for the dots themselves.
    let (width, tall) = (WIDTH - 20.0, height - 20.0);
    let dot = |(at, value): &(u64, f64)| Dot {
        x: 10.0 + width * (at - first) as f64 / (last - first) as f64,
        y: 10.0 + tall * (1.0 - value / top),
        value: *value,
        at: *at,
    };
    let dots: Vec<Dot> = values.iter().map(dot).collect();
    let points: Vec<String> = dots.iter().map(|dot| format!("{:.1},{:.1}", dot.x, dot.y)).collect();
    Some(Line { points: points.join(" "), dots, top })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_the_drawing_by_their_bytes_and_none_lies_on_another() {
        let sizes = [516, 480, 300, 120, 119, 60, 33, 8, 2, 1];
        let items: Vec<(String, u64)> = sizes.iter().map(|bytes| (format!("l{bytes}"), *bytes)).collect();
        let tiles = treemap(&items, 400.0);
        let total: u64 = sizes.iter().sum();
        for tile in &tiles {
            let share = tile.width * tile.height / (WIDTH * 400.0);
            assert!((share - tile.bytes as f64 / total as f64).abs() < 1e-9, "{tile:?}");
            assert!(tile.x >= 0.0 && tile.x + tile.width <= WIDTH + 1e-6, "{tile:?}");
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
        assert!(treemap(&[], 400.0).is_empty());
    }

    #[test]
    fn a_bar_that_passes_its_line_is_over() {
        let bars = bars(&[
            ("a".to_owned(), 90, Some(100)),
            ("b".to_owned(), 200, Some(100)),
            ("c".to_owned(), 5, None),
        ]);
        assert!(!bars[0].over && bars[1].over && !bars[2].over);
        assert_eq!(bars[1].width, WIDTH - LABELS - 10.0);
        assert_eq!(bars[0].limit, bars[1].limit);
    }

    #[test]
    fn a_line_needs_two_moments() {
        assert!(line(&[(1, 5.0)], 200.0).is_none() && line(&[(1, 5.0), (1, 6.0)], 200.0).is_none());
        let line = line(&[(0, 5.0), (50, 10.0), (100, 0.0)], 220.0).unwrap();
        assert_eq!(line.points, "10.0,110.0 480.0,10.0 950.0,210.0");
    }
}
