//! The headers of ARC, the format before WARC, as headers of WARC that say the same.
//!
//! A header is one line: the address, the IP, the date and the type of what was captured, and the length of
//! the block below. The second version has five more values before the length. The first record tells of
//! the file.

/// What a file begins with.
pub(super) const BEGINNING: &[u8] = b"filedesc:";

/// Values after the address, by version, and where the date and the type stand among them.
const LAYOUTS: [Layout; 2] = [
    Layout {
        values: 9,
        code: Some(3),
    },
    Layout {
        values: 4,
        code: None,
    },
];

struct Layout {
    values: usize,
    /// The place of the status.
    code: Option<usize>,
}

/// The header of WARC for a line of ARC; `None` if the line is no header.
pub(super) fn header(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii();
    let (address, values) = LAYOUTS.iter().find_map(|layout| values(line, layout))?;
    let (content_type, length) = (values[2], values.last()?);
    let date = date(std::str::from_utf8(values[1]).ok()?)?;
    let is_http = [&b"http://"[..], b"https://"].iter().any(|scheme| {
        let start = address.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    let (kind, content_type): (_, &[u8]) = if address.starts_with(BEGINNING) {
        ("warcinfo", content_type)
    } else if is_http {
        ("response", b"application/http")
    } else {
        ("resource", content_type)
    };
    let mut header = format!("WARC/1.0\r\nWARC-Type: {kind}\r\n").into_bytes();
    for (name, value) in [
        ("WARC-Target-URI", address),
        ("WARC-Date", date.as_bytes()),
        ("Content-Type", content_type),
        ("Content-Length", length),
    ] {
        header.extend_from_slice(name.as_bytes());
        header.extend_from_slice(b": ");
        header.extend_from_slice(value);
        header.extend_from_slice(b"\r\n");
    }
    header.extend_from_slice(b"\r\n");
    Some(header)
}

/// Whether a block ends with a whole record of its own, so that its length is wrong. A block that is an archive may.
pub(super) fn ends_with_record(block: &[u8]) -> bool {
    let breaks = memchr::memchr_iter(b'\n', block);
    let is_record = |(start, end): (usize, usize)| {
        let line = block[start + 1..end].trim_ascii_end();
        let is_long_enough = line.last().is_some_and(u8::is_ascii_digit);
        let mut layouts = LAYOUTS.iter().filter(|_| is_long_enough);
        let has_scheme = |address: &[u8]| memchr::memchr(b':', address).is_some();
        let length = layouts.find_map(|layout| {
            let (address, values) = values(line, layout)?;
            values.last().copied().filter(|_| has_scheme(address))
        });
        let length = length.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok());
        // It may count the line break behind the record, too.
        let rest = block[end + 1..].len();
        let with_break = rest.checked_sub(usize::from(block.ends_with(b"\n")));
        length.is_some() && (length == Some(rest) || length == with_break)
    };
    let lines = breaks.clone().zip(breaks.skip(1));
    let mut records = lines.filter(|line| is_record(*line));
    records.next().is_some() && memchr::memmem::find(block, BEGINNING).is_none()
}

/// A date as WARC writes it, with its time if the digits have one.
fn date(digits: &str) -> Option<String> {
    let day = format!(
        "{}-{}-{}",
        digits.get(..4)?,
        digits.get(4..6)?,
        digits.get(6..8)?
    );
    Some(match digits.get(8..14) {
        Some(time) => format!("{day}T{}:{}:{}Z", &time[..2], &time[2..4], &time[4..]),
        None => day,
    })
}

/// The address, and the values after it; an address may hold blanks.
fn values<'a>(line: &'a [u8], layout: &Layout) -> Option<(&'a [u8], Vec<&'a [u8]>)> {
    let mut words = line.rsplitn(layout.values + 1, |byte| *byte == b' ');
    let mut values: Vec<&[u8]> = words.by_ref().take(layout.values).collect();
    values.reverse();
    let address = words.next()?.trim_ascii();
    let is_number = |value: &[u8]| !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let is_date = is_number(values.get(1)?) && values[1].len() >= 8;
    let is_code = layout.code.is_none_or(|place| {
        let code = values[place];
        code == b"-" || is_number(code) && code.len() <= 3
    });
    let length = values.last()?;
    let is_length = is_number(length) && std::str::from_utf8(length).ok()?.parse::<u64>().is_ok();
    let is_header = !address.is_empty() && is_date && is_code && is_length;
    is_header.then_some((address, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read_and_addresses_may_hold_blanks() {
        for (line, kind, address, date, content_type, length) in [
            (
                "filedesc://a.arc 0.0.0.0 20080430204825 text/plain 76\n",
                "warcinfo",
                "filedesc://a.arc",
                "2008-04-30T20:48:25Z",
                "text/plain",
                "76",
            ),
            (
                "http://a/b c 1.2.3.4 20080430204826 text/html 680\r\n",
                "response",
                "http://a/b c",
                "2008-04-30T20:48:26Z",
                "application/http",
                "680",
            ),
            (
                "HTTPS://a/ 1.2.3.4 19961104142103 text/html 200 x - 20080430 a.arc 202\n",
                "response",
                "HTTPS://a/",
                "1996-11-04T14:21:03Z",
                "application/http",
                "202",
            ),
            (
                "dns:a 1.2.3.4 20080430 text/dns 56\n",
                "resource",
                "dns:a",
                "2008-04-30",
                "text/dns",
                "56",
            ),
        ] {
            let expected = format!(
                "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {address}\r\n\
                 WARC-Date: {date}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
            );
            let header = header(line.as_bytes());
            assert_eq!(header, Some(expected.into_bytes()), "{line}");
        }
        for line in [
            "",
            "\n",
            "<p>a page</p>\n",
            "http://a/ 1.2.3.4 20080430204826 text/html\n",
            "http://a/ 1.2.3.4 yesterday text/html 7\n",
            "http://a/ 1.2.3.4 20080430204826 text/html -7\n",
            "http://a/ 1.2.3.4 20080430204826 text/html 99999999999999999999\n",
            " 1.2.3.4 20080430204826 text/html 7\n",
        ] {
            assert_eq!(header(line.as_bytes()), None, "{line}");
        }
    }
}
