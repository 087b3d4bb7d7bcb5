//! What the double must do for the tests that stand on it to mean anything.

use super::*;

fn images(directory: &ForgetfulDirectory) -> impl Iterator<Item = ForgetfulDirectory> {
    (0..200).map(|seed| directory.crash_image(&mut Rng::with_seed(seed)))
}

#[test]
fn what_is_synced_survives_and_anything_else_may_not() {
    let directory = ForgetfulDirectory::default();
    for name in ["a", "b"] {
        let file = directory.open(name, Opening::CreateNew).unwrap();
        file.write_at(b"synced", 0).unwrap();
        file.sync_all().unwrap();
    }
    let names = |image: &ForgetfulDirectory| image.file_names().join(" ");
    let mut found: Vec<String> = images(&directory).map(|image| names(&image)).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, ["", "a", "a b", "b"]);

    directory.sync().unwrap();
    let file = directory.open("a", Opening::Write).unwrap();
    file.write_at(b"hidden", 0).unwrap();
    directory.rename("b", "c").unwrap();
    let mut found: Vec<String> = images(&directory).map(|image| names(&image)).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, ["a b", "a c"]);
    let mut found: Vec<Vec<u8>> = images(&directory).map(|image| image.bytes("a")).collect();
    found.sort();
    found.dedup();
    assert!(found.contains(&b"synced".to_vec()) && found.contains(&b"hidden".to_vec()));
    assert!(found.len() > 2, "and pieces of both: {found:?}");
}

#[test]
fn a_folder_is_lost_with_its_name_whatever_was_synced_in_it() {
    let directory = ForgetfulDirectory::default();
    directory.make_folder("log").unwrap();
    let folder = directory.folder("log").unwrap();
    let file = folder.open("a", Opening::CreateNew).unwrap();
    file.sync_all().unwrap();
    folder.sync().unwrap();
    let found = |directory: &ForgetfulDirectory| {
        let found = images(directory).filter(|image| {
            let folder = image.folder("log");
            folder.is_ok_and(|folder| folder.names().unwrap() == ["a"])
        });
        found.count()
    };
    assert!((1..200).contains(&found(&directory)));
    directory.sync().unwrap();
    assert_eq!(found(&directory), 200);
}

#[test]
fn a_killed_process_leaves_what_it_wrote_to_be_lost_later() {
    let directory = ForgetfulDirectory::default();
    directory.crash_at_sync(0);
    let file = directory.open("a", Opening::CreateNew).unwrap();
    file.write_at(b"written", 0).unwrap();
    assert!(!directory.has_crashed());
    file.sync_all().unwrap_err();
    assert!(directory.has_crashed());
    file.write_at(b"later", 0).unwrap_err();
    let after = directory.after_kill();
    assert_eq!(after.bytes("a"), b"written");
    assert!(images(&after).any(|image| image.file_names().is_empty()));
    after.open("a", Opening::Write).unwrap().sync_all().unwrap();
    after.sync().unwrap();
    assert!(images(&after).all(|image| image.bytes("a") == b"written"));
}

#[test]
fn a_lock_goes_when_its_file_is_closed() {
    let directory = ForgetfulDirectory::default();
    let open = || directory.open("lock", Opening::Create).unwrap();
    let alone = open();
    alone.try_lock().unwrap();
    open().try_lock().unwrap_err();
    open().try_lock_shared().unwrap_err();
    drop(alone);
    let (one, two) = (open(), open());
    one.try_lock_shared().unwrap();
    two.try_lock_shared().unwrap();
    drop(one);
    open().try_lock().unwrap_err();
    drop(two);
    open().try_lock().unwrap();
}
