//! What recovery refuses, naming file and offset, and what it passes over.

use uuid::Uuid;

use super::{LogOptions, STORE, commit, insert, open, recover, shared, without_marks};
use crate::element::Operation;
use crate::log::frame::{Body, FileHeader, Frames, put_frame};
use crate::log::{LogError, Record, file};
use crate::tests::ForgetfulDirectory;
use crate::{FIRST_FORMAT, FORMAT_VERSION};

/// Files of three records each, and one at the end; their names are 1, 4, 7 and 10.
fn files() -> Vec<(String, Vec<u8>)> {
    let memory = ForgetfulDirectory::default();
    let options = LogOptions {
        file_bytes: 64 + 3 * 128,
        allocate_bytes: 8,
        ..LogOptions::default()
    };
    let mut appender = open(&memory, options);
    for number in 1..=10 {
        commit(&mut appender, &[insert(number, 1)]).unwrap();
    }
    let names = memory.file_names();
    assert_eq!(names, [1, 4, 7, 10].map(file::name));
    let files = names.into_iter().map(|name| {
        let bytes = memory.bytes(&name);
        (name, bytes)
    });
    files.collect()
}

fn refusal(memory: &ForgetfulDirectory, first_needed: u64) -> String {
    recover(memory, first_needed).unwrap_err().to_string()
}

fn header(first: u64) -> FileHeader {
    let store = STORE;
    FileHeader {
        format: FIRST_FORMAT,
        store,
        first,
    }
}

/// A log of one file with these bytes behind its header.
fn single(frames: &[u8]) -> ForgetfulDirectory {
    let bytes = [&header(1).encode()[..], frames].concat();
    ForgetfulDirectory::with([(file::name(1), bytes)])
}

#[test]
fn records_are_read_from_the_first_that_is_needed() {
    let (tail, read) = recover(&ForgetfulDirectory::with(files()), 6).unwrap();
    let expected: Vec<_> = (6..=10).map(|number| (number, insert(number, 1))).collect();
    assert_eq!(read, expected);
    assert_eq!((tail.sequence, tail.cut()), (11, None));
    let (tail, read) = recover(&ForgetfulDirectory::with(files()), 11).unwrap();
    assert_eq!((tail.sequence, read), (11, Vec::new()));
}

/// L9.
#[test]
fn files_below_the_first_needed_may_be_gone_and_no_others() {
    for (missing, needed) in [(0, 4), (1, 7), (2, 10)] {
        let mut files = files();
        files.remove(missing);
        let memory = ForgetfulDirectory::with(files);
        assert!(recover(&memory, needed).is_ok(), "{missing}");
        let message = refusal(&memory, needed - 1);
        assert!(message.starts_with("disk"), "{message}");
        assert!(
            message.contains("put back the file that is missing"),
            "{message}"
        );
    }
    let mut last_gone = files();
    last_gone.pop();
    assert!(recover(&ForgetfulDirectory::with(last_gone.clone()), 10).is_ok());
    let message = refusal(&ForgetfulDirectory::with(last_gone), 11);
    assert_eq!(
        message,
        "disk: no file has record 11, or ends right before it; put back the file that is missing, or, if other nodes \
         hold its shards, move the data directory away and start the node with an empty one, else restore a backup"
    );
}

/// L9.
#[test]
fn an_empty_directory_is_a_log_that_was_lost() {
    let memory = ForgetfulDirectory::default();
    for needed in [1, 2] {
        let lost =
            crate::log::recover(
                shared(&memory),
                STORE,
                needed,
                |_, _| Ok::<(), LogError>(()),
            );
        let message = lost.unwrap_err().to_string();
        assert!(
            message.contains(&format!("no file has record {needed}")),
            "{message}"
        );
    }
    file::begin(&shared(&memory), STORE).unwrap();
    let (tail, read) = recover(&memory, 1).unwrap();
    assert_eq!((tail.sequence, read.len()), (1, 0));
    assert_eq!(memory.file_names(), [file::name(1)]);
    assert!(refusal(&memory, 2).contains("no file has record 2"));
}

/// L3.
#[test]
fn damage_in_a_file_that_is_not_the_last_is_refused() {
    for (index, first) in [(0, 1), (1, 4), (2, 7)] {
        let mut files = files();
        let last = last_frame(&files[index].1);
        files[index].1[last] ^= 1;
        let message = refusal(&ForgetfulDirectory::with(files.clone()), 1);
        let start = format!(
            "disk/{} at byte {last}: damaged, as a later file",
            file::name(first)
        );
        assert!(message.starts_with(&start), "{message}");
        // Zeros are the end of a file, which then ends too early.
        files[index].1[last..].fill(0);
        let message = refusal(&ForgetfulDirectory::with(files), 1);
        let next = file::name(first + 3);
        let start = format!("disk/{next} at byte 32: its first record is {}", first + 3);
        assert!(message.starts_with(&start), "{message}");
    }
}

/// Where the last frame of a file stands.
fn last_frame(bytes: &[u8]) -> usize {
    let header = FileHeader::decode(bytes).unwrap();
    Frames::new(bytes, &header).last().unwrap().offset
}

#[test]
fn files_of_another_store_name_or_format_are_refused() {
    let memory = ForgetfulDirectory::with(files());
    let other = Uuid::from_bytes([1; 16]);
    let error =
        crate::log::recover(shared(&memory), other, 1, |_, _| Ok::<(), LogError>(())).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("log at byte 16: it belongs to store 5a5a5a5a-"),
        "{message}"
    );
    assert!(message.contains("and this is store 01010101-"), "{message}");

    let bytes = header(2).encode().to_vec();
    let message = refusal(&ForgetfulDirectory::with([(file::name(1), bytes)]), 1);
    assert!(
        message.contains("log at byte 32: its first record is 2"),
        "{message}"
    );

    let mut newer = header(1).encode().to_vec();
    newer[8] = 5;
    let message = refusal(&ForgetfulDirectory::with([(file::name(1), newer)]), 1);
    assert!(
        message.contains("its format is version 5, this program reads version 4"),
        "{message}"
    );

    for bytes in [b"".to_vec(), b"SIMSHSEG".to_vec(), vec![0; 100]] {
        let message = refusal(&ForgetfulDirectory::with([(file::name(1), bytes)]), 1);
        assert!(
            message.contains("it does not start like a log file"),
            "{message}"
        );
    }
}

#[test]
fn a_sound_frame_without_a_record_is_refused() {
    let mut frames = Vec::new();
    put_frame(
        &mut frames,
        header(1).seed(),
        1,
        64,
        &Body::new(vec![9], FIRST_FORMAT),
    );
    assert_eq!(
        refusal(&single(&frames), 1),
        "disk/00000000000000000001.log at byte 64: there is no record of kind 9, although the frame is sound: \
         this program did not write it; delete nothing, as records behind it were acknowledged: if other nodes hold its \
         shards, move the data directory away and start the node with an empty one, else restore a backup"
    );
}

/// Programs that write version 1 know no such record.
#[test]
fn an_installation_in_a_file_of_version_1_is_refused() {
    let installation = Record::Operation(Operation::Install(Vec::new()));
    let body = Body::new(installation.encode().unwrap(), FORMAT_VERSION);
    let mut frames = Vec::new();
    put_frame(&mut frames, header(1).seed(), 1, 64, &body);
    let message = refusal(&single(&frames), 1);
    assert!(
        message.contains("there is no record of kind 6"),
        "{message}"
    );
}

/// L3: no write that is cut off leaves a frame of the file in a wrong place.
#[test]
fn a_frame_that_does_not_follow_is_refused() {
    for (sequence, synced) in [(2, 64), (0, 64), (2, 65), (1, 65)] {
        let mut frames = Vec::new();
        let body = Body::new(insert(1, 1).encode().unwrap(), FIRST_FORMAT);
        put_frame(&mut frames, header(1).seed(), sequence, synced, &body);
        let message = refusal(&single(&frames), 1);
        assert!(message.contains("log at byte 64: damaged"), "{message}");
    }
}

/// A client can choose what stands in an id, but not the CRC that frames of a file start from.
#[test]
fn a_frame_that_a_client_hid_in_an_id_shows_nothing() {
    let mut frames = Vec::new();
    let body = Body::new(insert(1, 1).encode().unwrap(), FIRST_FORMAT);
    put_frame(&mut frames, header(1).seed(), 1, 64, &body);
    frames[40] ^= 1;
    let end = 64 + frames.len() as u64;
    put_frame(&mut frames, header(2).seed(), 2, end, &body);
    let (tail, read) = recover(&single(&frames), 1).unwrap();
    assert_eq!((tail.cut().unwrap().offset, read.len()), (64, 0));
}

/// L8: a length is checked before anything is done with it.
#[test]
fn a_length_beyond_the_file_or_the_format_is_damage() {
    for length in [u32::MAX, (1 << 26) + 1, 1 << 26, 200] {
        let mut frame = Vec::new();
        put_frame(
            &mut frame,
            header(1).seed(),
            1,
            64,
            &Body::new(vec![5], FIRST_FORMAT),
        );
        frame[4..8].copy_from_slice(&length.to_le_bytes());
        let crc = crc32c::crc32c_append(header(1).seed(), &frame[..28]);
        frame[28..32].copy_from_slice(&crc.to_le_bytes());
        let (tail, read) = recover(&single(&frame), 1).unwrap();
        assert_eq!(
            (tail.cut().unwrap().offset, read.len()),
            (64, 0),
            "{length}"
        );
    }
}

#[test]
fn unfinished_files_go_and_strange_ones_stay() {
    let mut files = files();
    let unfinished = "00000000000000000011.new".to_owned();
    let strange = ["notes.txt", "1.log", "1.new", "lost+found"].map(str::to_owned);
    files.push((unfinished.clone(), b"SIM".to_vec()));
    files.extend(strange.iter().map(|name| (name.clone(), Vec::new())));
    let memory = ForgetfulDirectory::with(files);
    assert_eq!(without_marks(&recover(&memory, 1).unwrap().1).len(), 10);
    let names = memory.file_names();
    assert!(!names.contains(&unfinished));
    assert!(strange.iter().all(|name| names.contains(name)));
}
