//! An arrow leads from a source file to a file that the source file uses. If a parent exports a name of its child (`pub
//! use child::Name`), the arrow leads to the child.

use super::source::Source;
use std::collections::{BTreeSet, HashSet, VecDeque};

pub struct Arrows {
    sources: Vec<Source>,
    to: Vec<BTreeSet<usize>>,
}

impl Arrows {
    pub fn of(sources: Vec<Source>) -> Self {
        let mut arrows = Self { sources, to: Vec::new() };
        arrows.to = (0..arrows.sources.len()).map(|from| arrows.from(from)).collect();
        arrows
    }

    fn from(&self, from: usize) -> BTreeSet<usize> {
        let source = &self.sources[from];
        let is_child = |to: &usize| {
            let other = &self.sources[*to].module;
            other.len() > source.module.len() && other.starts_with(&source.module)
        };
        let named = source.named.iter().filter_map(|(path, within)| self.target(from, path, within));
        let handed_on = source.exports.values().filter_map(|path| self.target(from, path, &source.module));
        named.chain(handed_on.filter(|to| !is_child(to))).filter(|to| *to != from).collect()
    }

    fn target(&self, from: usize, path: &[String], within: &[String]) -> Option<usize> {
        let mut module = within.to_vec();
        let mut rest = path.iter().peekable();
        match rest.peek()?.as_str() {
            "crate" => {
                module.clear();
                rest.next();
            }
            "self" => {
                rest.next();
            }
            "super" => {
                while rest.next_if(|segment| *segment == "super").is_some() {
                    module.pop();
                }
            }
            child if path.len() > 1 && self.sources[from].children.iter().any(|name| name == child) => {}
            own => {
                let source = &self.sources[from];
                return self.target(from, source.exports.get(own)?, &source.module);
            }
        }
        module.extend(rest.cloned());
        let length = (0..=module.len()).rev().find(|&length| self.numbered(&module[..length]).is_some())?;
        let found = self.numbered(&module[..length])?;
        let handed_on = module.get(length).and_then(|name| self.sources[found].exports.get(name));
        let further = handed_on.and_then(|path| self.target(found, path, &self.sources[found].module));
        Some(further.unwrap_or(found))
    }

    fn numbered(&self, module: &[String]) -> Option<usize> {
        self.sources.iter().position(|source| source.module == module)
    }

    fn way(&self, from: impl Iterator<Item = usize>, is_there: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
        let mut ways: VecDeque<Vec<usize>> = from.map(|start| vec![start]).collect();
        let mut seen = HashSet::new();
        while let Some(way) = ways.pop_front() {
            for &next in &self.to[*way.last()?] {
                let longer: Vec<usize> = way.iter().copied().chain([next]).collect();
                if is_there(next) {
                    return Some(longer);
                }
                if seen.insert(next) {
                    ways.push_back(longer);
                }
            }
        }
        None
    }

    fn written(&self, way: &[usize]) -> String {
        way.iter().map(|&number| self.sources[number].file.as_str()).collect::<Vec<_>>().join(" → ")
    }

    pub fn all(&self) -> impl Iterator<Item = (&Source, &Source)> {
        let of = |(from, to): (usize, &BTreeSet<usize>)| to.iter().map(move |to| (from, *to)).collect::<Vec<_>>();
        self.to.iter().enumerate().flat_map(of).map(|(from, to)| (&self.sources[from], &self.sources[to]))
    }

    pub fn chain(&self, from: &str, to: &str) -> Option<String> {
        let is_in = |number: usize, room: &str| {
            let module = &self.sources[number].module;
            room.split("::").enumerate().all(|(level, name)| module.get(level).is_some_and(|own| own == name))
        };
        let starts = (0..self.sources.len()).filter(|&number| is_in(number, from));
        self.way(starts, |number| is_in(number, to)).map(|way| self.written(&way))
    }

    pub fn circles(&self) -> Vec<String> {
        let mut known = HashSet::new();
        let mut circles = Vec::new();
        for start in 0..self.sources.len() {
            let Some(way) = self.way([start].into_iter(), |number| number == start) else { continue };
            if known.insert(way.iter().copied().collect::<BTreeSet<_>>()) {
                circles.push(self.written(&way));
            }
        }
        circles
    }
}
