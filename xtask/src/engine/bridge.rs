//! The private engine's network bridge. A dockerd without one would take, or delete, another's.

use crate::apt::Bundle;
use crate::problem::{Id, refuse};
use crate::runner::Step;
use anyhow::Result;
use std::net::Ipv4Addr;
use std::path::Path;

/// The program that configures networks.
pub struct Ip {
    argv: Vec<String>,
    path: Option<String>,
}

impl Ip {
    /// The host's `ip`.
    pub fn of_host() -> Ip {
        Ip { argv: vec!["ip".to_owned()], path: None }
    }

    /// The `ip` inside busybox.
    pub fn of_busybox(bundle: &Bundle) -> Ip {
        Ip { argv: vec!["busybox".to_owned(), "ip".to_owned()], path: Some(bundle.path()) }
    }

    fn run(&self, reason: &str, args: &[&str]) -> Result<()> {
        let mut step = Step::new(reason, self.argv.clone()).args(args.iter().copied());
        if let Some(path) = &self.path {
            step = step.env("PATH", path);
        }
        let out = step.output()?;
        if out.status.success() {
            return Ok(());
        }
        refuse(
            Id::Engine,
            format!("`ip {}`", args.join(" ")),
            format!("it failed: {}", out.stderr.trim()),
            "run this as root where root may create network bridges (a container needs --privileged), or use your own docker",
        )
    }
}

/// Whether an interface exists.
pub fn exists(name: &str) -> bool {
    Path::new("/sys/class/net").join(name).exists()
}

/// Creates the bridge in a range that is free on this host, unless it is there.
pub fn create(ip: &Ip, name: &str) -> Result<()> {
    if exists(name) {
        return Ok(());
    }
    let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
    let Some(address) = free_address(&routes) else {
        return refuse(
            Id::Engine,
            "/proc/net/route",
            "no private range of addresses is free for the engine's bridge",
            "free one of 172.30.0.0/24 … 172.31.255.0/24, or use your own docker",
        );
    };
    ip.run("the engine's bridge", &["link", "add", "name", name, "type", "bridge"])?;
    ip.run("its address", &["addr", "add", &format!("{address}/24"), "dev", name])?;
    ip.run("its start", &["link", "set", name, "up"])
}

/// Removes the bridge if it is there.
pub fn remove(ip: &Ip, name: &str) -> Result<()> {
    match exists(name) {
        true => ip.run("the engine's bridge goes", &["link", "del", name]),
        false => Ok(()),
    }
}

/// The first address of a /24 that overlaps no route, out of 172.30.0.0/15, where docker itself looks last.
fn free_address(route_table: &str) -> Option<Ipv4Addr> {
    let taken: Vec<(u32, u32)> = route_table.lines().skip(1).filter_map(route).collect();
    let overlaps = |net: u32| taken.iter().any(|(to, mask)| net & mask & BITS_24 == to & mask & BITS_24);
    (30..=31)
        .flat_map(|b| (0..=255).map(move |c| Ipv4Addr::new(172, b, c, 1)))
        .find(|address| !overlaps(u32::from(*address) & BITS_24))
}

const BITS_24: u32 = 0xffff_ff00;

/// Destination and mask of a line of `/proc/net/route`, which holds them in the byte order of the machine. The default
/// route covers everything and is passed over.
fn route(line: &str) -> Option<(u32, u32)> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let number = |i: usize| u32::from_str_radix(columns.get(i)?, 16).ok().map(u32::from_be);
    let (destination, mask) = (number(1)?, number(7)?);
    (mask != 0).then_some((destination, mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";

    fn table(routes: &[(&str, &str)]) -> String {
        let hex = |text: &str| {
            let address: Ipv4Addr = text.parse().unwrap();
            format!("{:08X}", u32::from(address).to_be())
        };
        let line = |(to, mask): &(&str, &str)| format!("eth0 {} 0 1 0 0 0 {} 0 0 0\n", hex(to), hex(mask));
        format!("{HEAD}{}", routes.iter().map(line).collect::<String>())
    }

    #[test]
    fn a_range_is_taken_that_no_route_covers() {
        let free = |routes: &[(&str, &str)]| free_address(&table(routes)).map(|a| a.to_string());
        let default = ("0.0.0.0", "0.0.0.0");
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
        let cases: &[Case] = &[
            (&[], Some("172.30.0.1")),
            (&[default, ("172.17.0.0", "255.255.0.0")], Some("172.30.0.1")),
            (&[default, ("172.30.0.0", "255.255.255.0")], Some("172.30.1.1")),
            (&[("172.30.0.128", "255.255.255.128")], Some("172.30.1.1")),
            (&[("172.30.0.0", "255.255.0.0")], Some("172.31.0.1")),
            (&[("172.16.0.0", "255.240.0.0")], None),
        ];
        for (routes, want) in cases {
            assert_eq!(free(routes).as_deref(), *want, "{routes:?}");
        }
    }

    #[test]
    fn the_byte_order_is_the_machines() {
        // As the kernel prints 192.0.2.0/24 on a little-endian machine.
        if cfg!(target_endian = "little") {
            let line = "eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0";
            assert_eq!(route(line), Some((u32::from(Ipv4Addr::new(192, 0, 2, 0)), BITS_24)));
        }
    }
}
