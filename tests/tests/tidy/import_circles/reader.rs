//! Just enough understanding of imports: `use` statements, and paths that begin with `crate` or
//! `super`.

use crate::rust_source::{code_only, continues_a_word, without_test_modules};

/// What a `use` statement brings into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Whether other files get the name from here.
    pub(super) is_public: bool,
    /// The name that it has here; `*` for all names.
    pub(super) name: String,
    /// The path as it is written, name by name.
    pub(super) path: Vec<String>,
}

/// A file's product code.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) imports: Vec<Import>,
    /// Everything but `use` statements and declarations of modules.
    pub(super) rest: String,
}

impl Source {
    pub(super) fn of(text: &str) -> Self {
        let code = without_test_modules(&code_only(text));
        let mut source = Self {
            imports: Vec::new(),
            rest: String::new(),
        };
        for statement in code.split_inclusive(';') {
            match split_use(statement) {
                Some((before, tree)) => {
                    source.rest.push_str(before);
                    source.imports.extend(imports(is_public(before), tree));
                }
                None if is_declaration(statement) => {}
                None => source.rest.push_str(statement),
            }
        }
        source
    }

    /// The paths in the rest of the code that begin with this name, by the names in them.
    pub(super) fn paths(&self, first: &str) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        for (at, _) in self.rest.match_indices(first) {
            let before = self.rest[..at].chars().next_back();
            let continues = |before| continues_a_word(before) || before == ':';
            let after = &self.rest[at..];
            let end = after.find(|next| !continues_a_word(next) && next != ':');
            let path = after[..end.unwrap_or(after.len())].split("::");
            let path: Vec<String> = path.map(str::to_owned).collect();
            if path.len() > 1 && path[0] == first && !before.is_some_and(continues) {
                paths.push(path);
            }
        }
        paths
    }
}

/// Splits a statement that ends with a `use` into what comes before, and the tree of names.
fn split_use(statement: &str) -> Option<(&str, &str)> {
    let tree = statement.strip_suffix(';')?;
    let at = tree.rfind("use ")?;
    let stands_alone = !tree[..at].ends_with(continues_a_word);
    stands_alone.then(|| (&tree[..at], &tree[at + "use ".len()..]))
}

/// Whether what comes before a `use` makes it public, to the crate at least.
fn is_public(before: &str) -> bool {
    let last = before.rsplit(['\n', ';', '}', ']']).next();
    last.is_some_and(|words| words.trim_start().starts_with("pub"))
}

/// Whether a statement declares a module of a file of its own.
fn is_declaration(statement: &str) -> bool {
    let last = statement.rsplit('\n').next().unwrap_or_default();
    let words: Vec<&str> = last.trim_end_matches(';').split_whitespace().collect();
    matches!(words[..], ["mod", _] | [_, "mod", _])
}

/// The imports of a tree such as `a::{b, c::d as e}`.
fn imports(is_public: bool, tree: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    for leaf in leaves(tree) {
        let (path, alias) = match leaf.split_once(" as ") {
            Some((path, alias)) => (path, Some(alias.trim().to_owned())),
            None => (leaf.as_str(), None),
        };
        let path = path.split("::").map(|name| name.trim().to_owned());
        let mut path: Vec<String> = path.collect();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let last = path.last().cloned().unwrap_or_default();
        imports.push(Import {
            is_public,
            name: alias.unwrap_or(last),
            path,
        });
    }
    imports
}

/// A tree of names written out, path by path.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, inside)) = tree.split_once('{') else {
        return vec![tree.to_owned()];
    };
    let inside = inside.strip_suffix('}').unwrap_or(inside);
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for character in inside.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    let below = parts.flat_map(|part| leaves(part));
    below.map(|leaf| format!("{before}{leaf}")).collect()
}

#[test]
fn imports_are_read_name_by_name() {
    let source = Source::of(
        "//! Head.\nmod a;\nuse crate::{b::{self, C}, d as e};\npub(crate) use a::*;\n\
         fn f() { super::g::h(); a::k() }\n",
    );
    let seen: Vec<_> = source
        .imports
        .iter()
        .map(|import| {
            (
                import.is_public,
                import.name.as_str(),
                import.path.join("::"),
            )
        })
        .collect();
    let expected = [
        (false, "b", "crate::b"),
        (false, "C", "crate::b::C"),
        (false, "e", "crate::d"),
        (true, "*", "a::*"),
    ];
    let expected = expected.map(|(public, name, path)| (public, name, path.to_owned()));
    assert_eq!(seen, expected);
    assert_eq!(source.paths("super"), [["super", "g", "h"]]);
    assert_eq!(source.paths("a"), [["a", "k"]]);
    assert!(!source.rest.contains("mod a"), "{}", source.rest);
}
