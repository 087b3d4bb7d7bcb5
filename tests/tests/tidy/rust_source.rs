//! Just enough understanding of Rust to tell code from comments and strings, and product code
//! from test modules. Blanking keeps every line where it was.

/// The source with comments, strings and characters replaced by blanks.
pub(crate) fn code_only(source: &str) -> String {
    let source: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        let length = length_of_text(&source, at);
        for &character in &source[at..at + length] {
            code.push(if character == '\n' { '\n' } else { ' ' });
        }
        at += length;
        if length == 0 {
            code.push(source[at]);
            at += 1;
        }
    }
    code
}

/// The length of the comment, string or character that starts here; 0 if none does.
fn length_of_text(source: &[char], at: usize) -> usize {
    let rest = &source[at..];
    match rest[0] {
        '/' if rest.get(1) == Some(&'/') => until(rest, |index| rest[index] == '\n'),
        '/' if rest.get(1) == Some(&'*') => length_of_block_comment(rest),
        '"' => length_of_string(rest),
        'r' if at == 0 || !continues_a_word(source[at - 1]) => length_of_raw_string(rest),
        'b' | 'c' if rest.get(1) == Some(&'r') => match length_of_raw_string(&rest[1..]) {
            0 => 0,
            length => length + 1,
        },
        '\'' => length_of_character(rest),
        _ => 0,
    }
}

/// The first index at which `ends` holds, or the end.
fn until(rest: &[char], mut ends: impl FnMut(usize) -> bool) -> usize {
    (0..rest.len())
        .find(|&index| ends(index))
        .unwrap_or(rest.len())
}

fn length_of_block_comment(rest: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match (rest[at], rest.get(at + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at.min(rest.len())
}

fn length_of_string(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn length_of_raw_string(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&next| next == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let start = hashes + 2;
    let closing = |index: usize| {
        index >= start
            && rest[index] == '"'
            && rest[index + 1..]
                .iter()
                .take_while(|&&next| next == '#')
                .count()
                >= hashes
    };
    (until(rest, closing) + 1 + hashes).min(rest.len())
}

/// A character literal; a lifetime is none.
fn length_of_character(rest: &[char]) -> usize {
    match (rest.get(1), rest.get(2)) {
        (Some('\\'), _) => {
            let closing = until(rest, |index| index >= 3 && rest[index] == '\'');
            (closing + 1).min(rest.len())
        }
        (_, Some('\'')) => 3,
        _ => 0,
    }
}

/// Whether this character can stand inside a name.
pub(crate) fn continues_a_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether `word` stands in the text, not as part of a longer name.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        let open = |edge: Option<char>, inner: Option<char>| {
            !(inner.is_some_and(continues_a_word) && edge.is_some_and(continues_a_word))
        };
        open(before, word.chars().next()) && open(after, word.chars().next_back())
    })
}

/// For every line, given code without strings, whether it is part of an inline test module.
pub(crate) fn lines_in_test_modules(code: &str) -> Vec<bool> {
    let lines: Vec<&str> = code.lines().collect();
    let mut inside = Vec::with_capacity(lines.len());
    while inside.len() < lines.len() {
        match length_of_test_module(&lines[inside.len()..]) {
            0 => inside.push(false),
            length => inside.resize(inside.len() + length, true),
        }
    }
    inside
}

/// Blanks the inline modules that exist only for tests, given code without strings.
pub(crate) fn without_test_modules(code: &str) -> String {
    let inside = lines_in_test_modules(code);
    let mut kept = String::with_capacity(code.len());
    for (line, in_test_module) in code.lines().zip(inside) {
        if !in_test_module {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept
}

/// The number of lines of the test module that starts here, its attributes included.
fn length_of_test_module(lines: &[&str]) -> usize {
    if lines[0].trim() != "#[cfg(test)]" {
        return 0;
    }
    let attributes = lines
        .iter()
        .take_while(|line| line.trim().starts_with("#["))
        .count();
    match lines.get(attributes) {
        Some(line) if has_word(line, "mod") && line.trim_end().ends_with('{') => {
            attributes + length_of_block(&lines[attributes..])
        }
        _ => 0,
    }
}

/// The number of lines from here to the brace that closes the first one opened.
pub(crate) fn length_of_block(lines: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        for character in line.chars() {
            match character {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if depth == 0 && line.contains('}') {
            return index + 1;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_blanked_and_code_is_kept() {
        for (source, code) in [
            ("a // b\nc", "a c"),
            ("a /* b /* c */\n d */ e", "a e"),
            (r#"f("x\"{", y)"#, "f( , y)"),
            ("f(r#\"a\"b{\"#, y)", "f( , y)"),
            ("f(br\"{\", c\"{\")", "f( , c )"),
            (r"('{', '\'', '\u{7d}', b'{')", "( , , , b )"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("var\"x\"", "var "),
            ("a \"never closed", "a "),
        ] {
            let found = code_only(source);
            assert_eq!(found.chars().count(), source.chars().count(), "{source}");
            let words: Vec<&str> = found.split_whitespace().collect();
            let expected: Vec<&str> = code.split_whitespace().collect();
            assert_eq!(words, expected, "{source}");
        }
    }

    #[test]
    fn lines_stay_where_they_are() {
        let source = "one\n\"two\nthree\" // four\n/* five\nsix */ seven\n";
        assert_eq!(code_only(source).matches('\n').count(), 5);
        let module = "a\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nc\n";
        assert_eq!(without_test_modules(module), "a\n\n\n\n\n\nc\n");
    }

    #[test]
    fn only_inline_test_modules_are_left_out() {
        for kept in [
            "#[cfg(test)]\nmod tests;\n",
            "#[cfg(unix)]\nmod a {\n}\n",
            "mod b {\n}\n",
        ] {
            assert_eq!(without_test_modules(kept), kept);
        }
        let attributed = "#[cfg(test)]\n#[allow(x)]\nmod tests {\n}\n";
        assert_eq!(without_test_modules(attributed).trim(), "");
    }

    #[test]
    fn words_are_whole_words() {
        assert!(has_word("use std::io;", "std::io"));
        assert!(has_word("x.sleep(1)", "sleep("));
        assert!(!has_word("std::iota", "std::io"));
        assert!(!has_word("unsafe_code", "unsafe"));
        assert!(!has_word("asleep(1)", "sleep("));
    }

    #[test]
    fn a_block_ends_with_its_own_brace() {
        assert_eq!(
            length_of_block(&["fn f() {", "    if x {", "    }", "}", "}"]),
            4
        );
        assert_eq!(length_of_block(&["fn f() {}", "}"]), 1);
        assert_eq!(length_of_block(&["fn f(", ") {", "    {}", "}"]), 4);
    }
}
