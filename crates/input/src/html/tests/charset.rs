//! Which character set a page is read in.

use encoding_rs::{GB18030, KOI8_R, SHIFT_JIS, WINDOWS_1252};

use crate::html::Doubt;

/// The markup of a page.
fn decoded(bytes: &[u8], content_type: Option<&[u8]>) -> String {
    super::decoded(bytes, content_type).markup
}

#[test]
fn a_doubt_is_told() {
    let latin: &[u8] = b"<p>p\xE4ron";
    let header = Some(b"text/html; charset=latin1".as_slice());
    let other = Some(b"text/html; charset=no-such-set".as_slice());
    let utf8 = Some(b"text/html; charset=utf-8".as_slice());
    let (shift_jis, ..) = SHIFT_JIS.encode("<p>日本語の文章");
    for (page, content_type, doubt) in [
        (latin, None, Some(Doubt::Undeclared)),
        (latin, other, Some(Doubt::Undeclared)),
        (&shift_jis, None, Some(Doubt::Undeclared)),
        (latin, header, None),
        (b"<meta charset=latin1>p\xE4ron", None, None),
        (latin, utf8, Some(Doubt::Misdeclared)),
        (&shift_jis, utf8, Some(Doubt::Misdeclared)),
        (b"\xEF\xBB\xBFp\xE4ron", None, Some(Doubt::Misdeclared)),
        // A crawler has cut it.
        (b"p\xC3\xA4ron\xC3", utf8, None),
        (b"<meta charset=gbk>\xC4\xE3\xC4", None, None),
        (
            b"<meta charset=gbk>\xC4\xFF\xC4",
            None,
            Some(Doubt::Misdeclared),
        ),
        (
            &shift_jis[..shift_jis.len() - 1],
            Some(b"charset=shift_jis"),
            None,
        ),
        (b"\xFF\xFE<\0p\0>\0\xE4", None, None),
        ("<p>päron".as_bytes(), None, None),
        (b"<\0p\0>\0\xE4\0", None, None),
        (b"", None, None),
    ] {
        let found = super::decoded(page, content_type);
        assert_eq!(found.doubt, doubt, "{}", found.markup);
    }
}

#[test]
fn the_header_names_it() {
    for (encoding, text) in [
        (WINDOWS_1252, "päron"),
        (SHIFT_JIS, "日本語の文章"),
        (GB18030, "中文网页"),
        (KOI8_R, "русский текст"),
    ] {
        let (bytes, _, unmappable) = encoding.encode(text);
        assert!(!unmappable);
        let header = format!("text/html;x=y; Charset = \"{}\"", encoding.name());
        assert_eq!(decoded(&bytes, Some(header.as_bytes())), text);
    }
}

#[test]
fn the_beginning_of_the_page_names_it() {
    for declaration in [
        "<meta charset=koi8-r>",
        "<META  CHARSET = 'KOI8-R' />",
        "<meta http-equiv=Content-Type content=\"text/html; charset=koi8-r\">",
        "<meta name=charset content=x><meta charset=koi8-r>",
        "<meta charset=no-such-set><meta charset=koi8-r>",
        "<meta content='text/html; charset=koi8-r' HTTP-EQUIV='content-type'>",
        "<meta/charset=koi8-r>",
        "<meta charset=koi8-r content='text/html; charset=utf-8' http-equiv=content-type>",
        "<meta charset=koi8-r charset=utf-8>",
        "<!-- <meta charset=utf-8> --><meta charset=koi8-r>",
        "<!--><meta charset=koi8-r>",
        "<!---><meta charset=koi8-r>",
        "<p title='<meta charset=utf-8>'><meta charset=koi8-r>",
        "<?xml version='1.0' encoding='koi8-r'?>",
    ] {
        let page = [declaration.as_bytes(), b"\xC1"].concat();
        assert!(decoded(&page, None).ends_with('а'), "{declaration}");
    }
}

#[test]
fn what_only_looks_like_a_declaration_is_none() {
    for markup in [
        "<meta name=description content='about charset=koi8-r'>",
        "<meta name='charset=koi8-r'>",
        "<meta content='charset=koi8-r'>",
        "<meta http-equiv=refresh content='charset=koi8-r'>",
        "<meta x-charset=koi8-r>",
        "<metadata charset=koi8-r>",
        "<p title='<meta charset=koi8-r>'>",
        "</p title='<meta charset=koi8-r>'>",
        "<!-- <meta charset=koi8-r> -->",
        "<!doctype <meta charset=koi8-r>",
        "<meta charset=koi8-r",
        "<meta charset='koi8-r>",
    ] {
        let page = [markup.as_bytes(), b"\xC1"].concat();
        assert!(decoded(&page, None).ends_with('Á'), "{markup}");
    }
}

#[test]
fn a_byte_order_mark_is_before_the_header_and_that_before_the_page() {
    let meta = b"<meta charset=koi8-r>";
    let page = |mark: &[u8]| [mark, meta, b"\xC3\xA4"].concat();
    let windows = Some(b"text/html; charset=windows-1252".as_slice());
    let ends = |text: String, end: &str| assert!(text.ends_with(&format!(">{end}")), "{text}");
    ends(decoded(&page(b"\xEF\xBB\xBF"), windows), "ä");
    ends(decoded(&page(b""), windows), "Ã¤");
    ends(
        decoded(&page(b""), Some(b"text/html; charset=unknown")),
        "ц╓",
    );
    ends(decoded(&page(b""), None), "ц╓");
    assert_eq!(decoded(b"\xFF\xFEp\0\xE4\0", windows), "pä");
    assert_eq!(decoded(b"\xFE\xFF\0p\0\xE4", windows), "pä");
}

/// Without its NULs, each letter of such a page is another one of ASCII, and unlike pages look alike.
#[test]
fn a_page_of_utf_16_needs_no_byte_order_mark() {
    let markup = "<p>привет мир</p>";
    let bytes = |bytes_of: fn(u16) -> [u8; 2]| -> Vec<u8> {
        markup.encode_utf16().flat_map(bytes_of).collect()
    };
    assert_eq!(decoded(&bytes(u16::to_le_bytes), None), markup);
    assert_eq!(decoded(&bytes(u16::to_be_bytes), None), markup);
    let header = Some(b"text/html".as_slice());
    assert_eq!(decoded(&bytes(u16::to_le_bytes), header), markup);
}

#[test]
fn without_a_name_it_is_utf_8_where_that_fits() {
    let far = [b" ".repeat(1024).as_slice(), b"<meta charset=koi8-r>\xC1"].concat();
    assert!(decoded(&far, None).ends_with('Á'));
    assert_eq!(decoded("päron".as_bytes(), None), "päron");
    assert_eq!(decoded(b"p\xE4ron \x80", None), "päron €");
    // A crawler may have cut the page within its last character, but a bad byte before the end is of another set.
    assert_eq!(decoded(b"p\xC3\xA4ron \xE2\x82", None), "päron \u{FFFD}");
    assert_eq!(decoded(b"p\xC3\xA4ron \xE2\x82.", None), "pÃ¤ron â‚.");
    // A meta element that can be read is not in UTF-16, and no set that loses the text is taken.
    assert!(decoded("<meta charset=utf-16>ä".as_bytes(), None).ends_with('ä'));
    assert_eq!(decoded(b"a", Some(b"text/html; charset=hz-gb-2312")), "a");
}

/// HT2.
#[test]
fn what_the_character_set_does_not_have_is_replaced_and_nuls_are_dropped() {
    let utf_8 = Some(b"charset=utf-8".as_slice());
    assert_eq!(decoded(b"a\xFFb\0c", utf_8), "a\u{FFFD}bc");
    for cut in [
        "<meta",
        "<meta charset",
        "<meta charset=",
        "<met",
        "<",
        "<?xml encoding=",
        "<!--",
    ] {
        assert_eq!(decoded(cut.as_bytes(), None), cut);
    }
}
