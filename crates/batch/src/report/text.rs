//! Text from outside: ids, paths, reasons. It may hold anything, and is shown as what it is.

use maud::{Markup, html};
use simshard_runtime::terminal::is_obeyed;

/// Bytes of a folder from which on it has a line of its own.
const FOLDER: usize = 16;

/// Characters of a text that are shown; no id is longer.
const LONGEST: usize = 1024;

/// A text from outside. Its direction does not leak into what stands around it, and characters that
/// one cannot see are spelled out.
pub(super) fn outside(text: &str) -> Markup {
    if text.is_empty() {
        return html! { span.mark { "empty" } };
    }
    let cut = text.char_indices().nth(LONGEST).map(|(at, _)| at);
    let shown = &text[..cut.unwrap_or(text.len())];
    let hidden = text[shown.len()..].chars().count();
    html! {
        bdi {
            @for piece in pieces(shown) {
                @match piece {
                    Piece::Plain(text) => (text),
                    Piece::Unseen(character) => span.mark { (name(character)) },
                }
            }
        }
        @if hidden > 0 { " " span.more { "… and " (hidden) " more characters" } }
    }
}

/// The folder that several paths or addresses have in common; empty if it is not worth a line of its own.
pub(super) fn common_folder<'a>(ids: impl IntoIterator<Item = &'a str>) -> &'a str {
    let mut ids = ids.into_iter();
    let Some(first) = ids.next() else {
        return "";
    };
    let mut common = first.rfind('/').map_or("", |end| &first[..=end]);
    let mut are_several = false;
    for id in ids {
        are_several = true;
        while !id.starts_with(common) || id.len() == common.len() {
            let parent = common.trim_end_matches('/').rfind('/');
            common = parent.map_or("", |end| &common[..=end]);
            if common.is_empty() {
                return "";
            }
        }
    }
    if are_several && common.len() >= FOLDER {
        common
    } else {
        ""
    }
}

/// A text from outside without the folder that stands above it.
pub(super) fn outside_within(folder: &str, text: &str) -> Markup {
    match text.strip_prefix(folder) {
        Some(rest) if !folder.is_empty() => html! { span.more { "…/" } (outside(rest)) },
        Some(_) | None => outside(text),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Plain(&'a str),
    Unseen(char),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(unseen) {
        let (plain, tail) = rest.split_at(at);
        if !plain.is_empty() {
            pieces.push(Piece::Plain(plain));
        }
        let mut tail = tail.chars();
        pieces.extend(tail.next().map(Piece::Unseen));
        rest = tail.as_str();
    }
    if !rest.is_empty() {
        pieces.push(Piece::Plain(rest));
    }
    pieces
}

/// Whether a character shows nothing of its own, or changes how others are shown. The joiners
/// U+200C and U+200D are not among them: scripts need them.
fn unseen(character: char) -> bool {
    is_obeyed(character)
        || matches!(
            character,
            '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{fdd0}'..='\u{fdef}' | '\u{e0000}'..='\u{e007f}'
        )
        || u32::from(character) & 0xfffe == 0xfffe
}

fn name(character: char) -> String {
    match character {
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        _ => format!("U+{:04X}", u32::from(character)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        outside(text).into_string()
    }

    #[test]
    fn markup_and_quotes_are_escaped() {
        assert_eq!(
            shown("<b a=\"'&amp;"),
            "<bdi>&lt;b a=&quot;'&amp;amp;</bdi>"
        );
    }

    #[test]
    fn characters_that_one_cannot_see_are_spelled_out() {
        let mark = |name: &str| format!("<bdi>a<span class=\"mark\">{name}</span>b</bdi>");
        for (character, name) in [
            ('\0', "U+0000"),
            ('\n', "\\n"),
            ('\u{85}', "U+0085"),
            ('\u{202e}', "U+202E"),
            ('\u{2066}', "U+2066"),
            ('\u{fffe}', "U+FFFE"),
            ('\u{10ffff}', "U+10FFFF"),
        ] {
            assert_eq!(shown(&format!("a{character}b")), mark(name));
        }
        for text in ["héllo", "שלום", "می\u{200c}خواهم", "👩\u{200d}🔬"] {
            assert_eq!(shown(text), format!("<bdi>{text}</bdi>"));
        }
    }

    #[test]
    fn paths_have_the_folder_in_common_that_all_are_in() {
        let long = "https://www.example.org/";
        for (ids, folder) in [
            (&["a/b/c"][..], ""),
            (&["a/b/c", "a/b/d"], ""),
            (
                &["https://www.example.org/a/1", "https://www.example.org/a/2"],
                "https://www.example.org/a/",
            ),
            (
                &["https://www.example.org/a/1", "https://www.example.org/ab"],
                long,
            ),
            (
                &["https://www.example.org/a", "https://www.example.org/"],
                "",
            ),
            (&["https://www.example.org/a", "b"], ""),
        ] {
            assert_eq!(common_folder(ids.iter().copied()), folder, "{ids:?}");
        }
        let within = outside_within(long, "https://www.example.org/<a>").into_string();
        assert_eq!(within, "<span class=\"more\">…/</span><bdi>&lt;a&gt;</bdi>");
    }

    #[test]
    fn an_empty_text_is_called_empty() {
        assert_eq!(shown(""), "<span class=\"mark\">empty</span>");
    }

    #[test]
    fn the_longest_id_is_whole_and_what_is_longer_is_cut() {
        assert!(!shown(&"é".repeat(LONGEST)).contains("more"));
        assert!(shown(&"é".repeat(LONGEST + 7)).contains("… and 7 more characters"));
    }
}
