//! Layers of wheels that come one after the other.

use super::*;
use crate::wheels::tests::wheel;

/// Two groups of one wheel each, the bigger one last, and the folders that have the wheels.
fn groups() -> [(Group, tempfile::TempDir); 2] {
    ["small", "big"].map(|name| {
        let dir = tempfile::tempdir().unwrap();
        let path = wheel(dir.path(), &[(&format!("a/{name}"), name.as_bytes(), 0o644)]);
        let (file, sha256) = (path.file_name().unwrap().to_str().unwrap().to_owned(), name.to_owned());
        let bytes = if name == "big" { 2 } else { 1 };
        let wheel = Wheel { name: "a".to_owned(), version: "1".to_owned(), file, bytes, sha256 };
        (Group { name: name.to_owned(), wheels: vec![wheel], others: Vec::new() }, dir)
    })
}

fn base() -> Base {
    let venv = Venv { folder: "/opt/venv".into(), python: "3.13".into() };
    Base {
        release: "1".to_owned(),
        platform: Platform::Amd64,
        groups: Vec::new(),
        venv,
        codec: Codec::Splice,
    }
}

#[test]
fn a_layer_is_made_while_other_wheels_still_come_and_is_the_same_in_any_order() {
    let groups = groups();
    let made_in = |order: [usize; 2]| {
        let dir = tempfile::tempdir().unwrap();
        let (base, store) = (base(), Store::open(dir.path()).unwrap());
        let arrivals = Arrivals::of(&groups.each_ref().map(|it| &it.0));
        let (tell, told) = std::sync::mpsc::channel::<Layer>();
        let mut made = std::thread::scope(|scope| {
            let _more = arrivals.expected();
            let (base, store, arrivals) = (&base, &store, &arrivals);
            let tell = move |layer: &Layer| tell.send(layer.clone()).unwrap();
            scope.spawn(move || base.convert(store, arrivals, &tell));
            order.map(|i| {
                let (group, dir) = &groups[i];
                arrivals.came(&group.wheels[0], dir.path().join(&group.wheels[0].file));
                // Nothing else came, and nothing else comes before this one is made.
                let layer = told.recv().unwrap();
                assert_eq!(layer.name, group.name);
                layer
            })
        });
        assert_eq!(arrivals.into_files().unwrap().len(), 2);
        made.sort_by_key(|layer| layer.name.clone());
        made
    };
    assert_eq!(made_in([0, 1]), made_in([1, 0]));
}

#[test]
fn a_conversion_that_fails_is_told_to_those_who_fetch() {
    let [(small, dir), (big, _)] = groups();
    let (base, store) = (base(), Store::open(dir.path()).unwrap());
    let torn = dir.path().join("torn.whl");
    std::fs::write(&torn, "no archive").unwrap();
    let arrivals = Arrivals::of(&[&small, &big]);
    let more = arrivals.expected();
    arrivals.came(&small.wheels[0], torn);
    // It comes back although the other wheel never comes.
    base.convert(&store, &arrivals, &|layer| panic!("{layer:?}"));
    assert!(arrivals.has_failed());
    drop(more);
    let error = arrivals.into_files().unwrap_err().to_string();
    assert!(error.contains("E_WHEEL") && error.contains("torn.whl"), "{error}");
}
