//! PQ1, PQ2: damaged and hostile files are errors, not panics, and lose no row in silence.

use std::io::Read;

use bytes::Bytes;
use parquet::column::page::Page;
use parquet::file::properties::EnabledStatistics;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::SchemaDescriptor;

use super::super::MAX_PAGE_BYTES;
use super::super::pages::{BoundedPages, check, least_width};
use super::*;

const IDS: [&str; 5] = ["a", "b", "a", "b", "c"];
const TEXTS: [&str; 5] = ["one text", "one text", "another", "one text", "ένα κείμενο"];

/// Small files of every kind, and how each is read.
fn victims() -> Vec<(String, Vec<u8>, TableColumns)> {
    let mut victims = Vec::new();
    let groups = || {
        let group = || vec![texts(&IDS), texts(&TEXTS)];
        [group(), group()]
    };
    for (way, properties) in ways() {
        let file = file_of(TEXT_SCHEMA, properties, &groups());
        victims.push((way.to_owned(), file, text_columns()));
    }
    let never_null = TEXT_SCHEMA.replace("optional", "required");
    let file = file_of(&never_null, plain(), &groups());
    victims.push(("never null".to_owned(), file, text_columns()));
    let delta = plain()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED);
    for (way, properties) in [("integers", plain()), ("delta integers", delta)] {
        let schema = "message m { required int32 id; optional int64 fingerprint (UINT_64); }";
        let ids = Int32((0..100).map(Some).collect());
        let prints = Int64((0..100).map(|n| Some(n << (n % 64))).collect());
        let file = file_of(schema, properties, &[vec![ids, prints]]);
        victims.push((way.to_owned(), file, fingerprint_columns()));
    }
    victims
}

/// Reads to the end; the number of rows that were documents or at fault themselves, where the file
/// held together.
fn survey(bytes: &[u8], columns: &TableColumns) -> Result<u64, ParquetError> {
    let mut rows = 0;
    for result in open(bytes, columns)? {
        match result {
            Ok(_) => rows += 1,
            Err(error) if error.is_bad_row() => rows += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(rows)
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    for (way, file, columns) in victims() {
        for length in 0..file.len() {
            let survey = survey(&file[..length], &columns);
            assert!(survey.is_err(), "{way}, cut at {length}");
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_no_panic_and_loses_no_row_in_silence() {
    for (way, file, columns) in victims() {
        let rows = survey(&file, &columns).unwrap();
        for at in 0..file.len() {
            for flip in [0x01, 0x10, 0x80] {
                let mut damaged = file.clone();
                damaged[at] ^= flip;
                if let Ok(read) = survey(&damaged, &columns) {
                    assert_eq!(
                        read,
                        rows,
                        "{way}, byte {at} of {} by {flip:#x}",
                        file.len()
                    );
                }
            }
        }
    }
}

/// The first page header of a file without dictionaries starts here.
const FIRST_PAGE: usize = 4;

#[test]
fn a_page_that_claims_gigabytes_is_refused_before_memory_is_taken() {
    let ids: Vec<_> = (0..300).map(Some).collect();
    let schema = "message m { required int32 id; required int32 fingerprint; }";
    let properties = plain()
        .set_dictionary_enabled(false)
        .set_compression(Compression::SNAPPY);
    let file = file_of(schema, properties, &[vec![Int32(ids.clone()), Int32(ids)]]);
    // Type 0, then two sizes of two bytes each.
    assert_eq!(file[FIRST_PAGE..FIRST_PAGE + 3], [0x15, 0x00, 0x15]);
    assert_eq!(file[FIRST_PAGE + 5], 0x15);
    for (size, refused) in [(MAX_PAGE_BYTES + 1, true), (MAX_PAGE_BYTES, false)] {
        let mut zigzag = size * 2;
        let mut grown = file[..FIRST_PAGE + 3].to_vec();
        for _ in 0..4 {
            grown.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        grown.push(zigzag as u8);
        grown.extend_from_slice(&file[FIRST_PAGE + 5..]);
        let mut reader = BoundedPages::new(on_disk(&grown))
            .get_read(FIRST_PAGE as u64)
            .unwrap();
        assert_eq!(reader.read(&mut [0]).is_err(), refused);
        let message = survey(&grown, &fingerprint_columns())
            .unwrap_err()
            .to_string();
        assert_eq!(
            message.contains("write the file with smaller pages"),
            refused,
            "{message}"
        );
    }
}

/// Thrift has other ways to write a header, by which its sizes would not be seen.
#[test]
fn a_page_header_in_an_odd_form_is_refused() {
    const ODD: &str = "the header of a page does not begin with its sizes";
    let first_byte = |file: &[u8]| {
        let reader = BoundedPages::new(on_disk(file)).get_read(0);
        reader.unwrap().read(&mut [0])
    };
    let refusal = |header: &[u8]| {
        let read = first_byte(&[header, &[0; 16]].concat());
        read.err().map(|error| error.to_string())
    };
    assert_eq!(refusal(&[0x15, 0, 0x15, 40, 0x15, 40]), None);
    // Negative, for the library to refuse.
    assert_eq!(refusal(&[0x15, 0, 0x15, 1, 0x15, 1]), None);
    let huge = [0x80, 0x80, 0x80, 0x80, 0x08];
    let longer = [0x80, 0x80, 0x80, 0x80, 0x88, 0];
    let wrapped = [0x80, 0x80, 0x80, 0x80, 0x14];
    for header in [
        // A field id of its own, sizes in another order, and one that is left out.
        [&[0x15, 0, 0x05, 4][..], &huge, &[0x15, 40]].concat(),
        [&[0x15, 0, 0x25, 40, 0x05, 4], &huge[..]].concat(),
        [&[0x15, 0, 0x15, 40, 0x2C][..], &huge].concat(),
        // Zeros after the number, and a number of which the library takes the low half.
        [&[0x15, 0, 0x15][..], &longer, &[0x15, 40]].concat(),
        [&[0x15, 0, 0x15][..], &wrapped, &[0x15, 40]].concat(),
    ] {
        let message = refusal(&header).unwrap();
        assert!(message.ends_with(ODD), "{header:x?}: {message}");
    }
    assert!(first_byte(&[0x15, 0, 0x15, 40, 0x15, 0x80, 0, 0, 0]).is_ok());
    let cut = first_byte(&[0x15, 0, 0x15, 40, 0x15, 0x80]).unwrap_err();
    assert!(cut.to_string().ends_with(ODD));
}

#[test]
fn what_should_stand_beyond_the_end_takes_no_memory() {
    let pages = BoundedPages::new(on_disk(b"short"));
    for (start, length) in [(0, 6), (0, usize::MAX), (u64::MAX, 1)] {
        let message = pages.get_bytes(start, length).unwrap_err().to_string();
        assert!(message.ends_with("but the file has 5 in all"), "{message}");
    }
    assert_eq!(pages.get_bytes(0, 5).unwrap(), "short");
}

#[test]
fn damage_is_told_with_file_row_and_row_group() {
    let group = || vec![texts(&IDS), texts(&TEXTS)];
    let properties = plain()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None);
    let mut file = file_of(TEXT_SCHEMA, properties, &[group(), group()]);
    // The length of the last text of the second group.
    let last = TEXTS[4].as_bytes();
    let at = file
        .windows(last.len())
        .rposition(|bytes| bytes == last)
        .unwrap();
    file[at - 4] = 0x7F;
    let results = results(&file, &text_columns());
    assert_eq!(results.len(), 10);
    let message = results[9].as_ref().unwrap_err();
    let start = "a.parquet: cannot read on after row 10, in row group 2 of 2: ";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn a_dictionary_that_claims_more_values_than_its_bytes_can_hold_is_refused() {
    for (column, bytes, values, fits) in [
        ("binary", 8, 2, true),
        ("binary", 8, 3, false),
        ("int32", 8, 3, false),
        ("int64", 16, 2, true),
        ("int64", 16, 3, false),
        ("int96", 12, 2, false),
        ("fixed_len_byte_array (2)", 4, 2, true),
        ("fixed_len_byte_array (2)", 4, 3, false),
        ("binary", 8, u32::MAX, false),
    ] {
        let schema = format!("message m {{ required {column} c; }}");
        let schema = SchemaDescriptor::new(Arc::new(parse_message_type(&schema).unwrap()));
        let page = Page::DictionaryPage {
            buf: Bytes::from(vec![0; bytes]),
            num_values: values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let checked = check(&page, least_width(&schema.column(0)), 7);
        assert_eq!(checked.ok(), fits.then_some(7), "{column}, {values} values");
    }
}

#[test]
fn a_page_of_more_values_than_there_are_rows_is_refused() {
    for (values, left) in [(6, Some(1)), (7, Some(0)), (8, None), (u32::MAX, None)] {
        let page = Page::DataPage {
            buf: Bytes::new(),
            num_values: values,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        assert_eq!(check(&page, 8, 7).ok(), left, "{values} values");
    }
}

#[test]
fn a_file_that_miscounts_its_rows_is_an_error() {
    let column = || texts(&["x"; 60]);
    // Two pages a column, so that half the rows end where a page does.
    let properties = plain()
        .set_data_page_row_count_limit(30)
        .set_write_batch_size(30)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None);
    let file = file_of(TEXT_SCHEMA, properties, &[vec![column(), column()]]);
    assert_eq!(survey(&file, &text_columns()).unwrap(), 60);

    // 60 and 30 as the file's end holds them. Which of the bytes are counts is not known here.
    let (all, half) = (120, 60);
    let counts: Vec<_> = (0..file.len()).filter(|at| file[*at] == all).collect();
    let mut messages = String::new();
    for first in &counts {
        for second in &counts {
            let mut wrong = file.clone();
            wrong[*first] = half;
            wrong[*second] = half;
            match survey(&wrong, &text_columns()) {
                Ok(rows) => assert_eq!(rows, 60, "bytes {first} and {second}"),
                Err(error) => messages.push_str(&error.to_string()),
            }
        }
    }
    for expected in [
        "it says to have 30 rows, but has 60 in its row groups",
        "after row 30, in row group 1 of 1: a page of 30 values where 0 are left",
    ] {
        assert!(messages.contains(expected), "{expected}: {messages}");
    }
}
