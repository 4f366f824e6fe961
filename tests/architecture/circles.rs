//! Circles of a graph of files.

use std::collections::{BTreeMap, BTreeSet};

/// The files that each file refers to, and the names by which it does.
pub(crate) type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// All files that can be reached from a file.
fn reached<'g>(graph: &'g Graph, from: &'g str) -> BTreeSet<&'g str> {
    let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(at) = todo.pop() {
        for to in graph.get(at).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(&**to) {
                todo.push(to);
            }
        }
    }
    seen
}

/// The groups of files that refer to each other, directly or not.
pub(crate) fn circles(graph: &Graph) -> BTreeSet<Vec<&str>> {
    let reached: BTreeMap<&str, _> = graph
        .keys()
        .map(|file| (&**file, reached(graph, file)))
        .collect();
    let circle = |file: &&str| {
        let all = reached[*file].iter().copied();
        all.filter(|other| reached.get(other).is_some_and(|of| of.contains(*file)))
            .collect()
    };
    let circles: BTreeSet<Vec<&str>> = reached.keys().map(circle).collect();
    circles
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .collect()
}

/// The references within a circle, a line for each two files.
pub(crate) fn within(graph: &Graph, circle: &[&str]) -> Vec<String> {
    let of = |from: &&str| {
        let inside = graph[*from]
            .iter()
            .filter(|(to, _)| circle.contains(&&***to));
        let line = |(to, names): (&String, &String)| format!("{from} -> {to}: {names}");
        inside.map(line).collect::<Vec<_>>()
    };
    circle.iter().flat_map(of).collect()
}
