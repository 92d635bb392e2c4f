//! An image's start condition, `NVIDIA_REQUIRE_CUDA`: alternatives between spaces, each of terms between commas.
//!
//! The grammar is that of libnvidia-container: `cuda>=12.8 brand=tesla,driver>=535,driver<536`.

use crate::compat::{Sm, Version};

/// What a condition is held against.
#[derive(Clone, Debug)]
pub struct Host<'a> {
    /// The newest CUDA that the driver runs by itself; none where nobody tells.
    pub cuda: Option<Version>,
    /// The driver.
    pub driver: Version,
    /// NVIDIA's word for the kind of the card.
    pub brand: &'a str,
    /// The card's compute capability.
    pub sm: Option<Sm>,
}

/// NVIDIA's word for the kind of a card, as far as conditions tell kinds apart: consumers' cards and the others.
pub fn brand(name: &str) -> &'static str {
    match () {
        () if name.contains("GeForce") => "geforce",
        () if name.to_uppercase().contains("TITAN") => "titan",
        () => "tesla",
    }
}

impl Host<'_> {
    /// Whether the condition holds: one of its alternatives does.
    pub fn meets(&self, condition: &str) -> bool {
        let mut alternatives = condition.split_whitespace();
        condition.trim().is_empty() || alternatives.any(|terms| terms.split(',').all(|term| self.holds(term)))
    }

    fn holds(&self, term: &str) -> bool {
        let Some((name, operator, value)) = parts(term) else { return false };
        let version = Version::parse(value);
        match name {
            "brand" => (value == self.brand) == (operator == "="),
            "cuda" => self.cuda.as_ref().is_some_and(|cuda| compare(cuda, operator, version.as_ref())),
            "driver" => compare(&self.driver, operator, version.as_ref()),
            "arch" => self.sm.zip(Sm::parse(value)).is_none_or(|(sm, wanted)| order(&sm, operator, &wanted)),
            _ => false,
        }
    }
}

/// The CUDA that a condition asks for first of all.
pub fn wanted_cuda(condition: &str) -> Option<&str> {
    let terms = condition.split([' ', ',']).filter_map(parts);
    terms.filter(|(name, operator, _)| *name == "cuda" && operator.starts_with('>')).map(|it| it.2).next()
}

/// `cuda>=12.8` in three.
fn parts(term: &str) -> Option<(&str, &str, &str)> {
    let start = term.find(['>', '<', '=', '!'])?;
    let rest = &term[start..];
    let end = rest.find(|c| !"><=!".contains(c))?;
    Some((&term[..start], &rest[..end], &rest[end..]))
}

fn compare(have: &Version, operator: &str, wanted: Option<&Version>) -> bool {
    wanted.is_some_and(|wanted| order(have, operator, wanted))
}

fn order<T: Ord>(have: &T, operator: &str, wanted: &T) -> bool {
    match operator {
        ">=" => have >= wanted,
        ">" => have > wanted,
        "<=" => have <= wanted,
        "<" => have < wanted,
        "=" => have == wanted,
        "!=" => have != wanted,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NVIDIA: &str = "cuda>=12.8 brand=unknown,driver>=470,driver<471 brand=tesla,driver>=535,driver<536";

    fn host<'a>(cuda: &str, driver: &str, card: &'a str) -> Host<'a> {
        let (cuda, driver) = (Version::parse(cuda), Version::parse(driver).unwrap());
        Host { cuda, driver, brand: brand(card), sm: Sm::parse("8.6") }
    }

    #[test]
    fn one_alternative_is_enough() {
        let cases = [
            ("12.8", "570.86.15", "NVIDIA GeForce RTX 3090", true),
            ("13.0", "580.95.05", "NVIDIA GeForce RTX 3090", true),
            ("12.4", "550.90.07", "NVIDIA GeForce RTX 3090", false),
            ("12.2", "535.216.01", "NVIDIA GeForce RTX 3090", false),
            ("12.2", "535.216.01", "NVIDIA A100-SXM4-80GB", true),
            ("12.4", "550.90.07", "NVIDIA A100-SXM4-80GB", false),
        ];
        for (cuda, driver, card, meets) in cases {
            assert_eq!(host(cuda, driver, card).meets(NVIDIA), meets, "{cuda} {driver} {card}");
        }
    }

    #[test]
    fn terms_of_every_kind() {
        let host = host("12.4", "550.90.07", "NVIDIA TITAN RTX");
        for (condition, meets) in [
            ("", true),
            ("brand!=tesla", true),
            ("brand=titan", true),
            ("arch>=8.0", true),
            ("arch>=9.0", false),
            ("driver>=550", true),
            ("driver<550", false),
            ("cuda>12.4", false),
            ("nonsense", false),
            ("other>=1", false),
        ] {
            assert_eq!(host.meets(condition), meets, "{condition}");
        }
        assert_eq!(wanted_cuda(NVIDIA), Some("12.8"));
    }
}
