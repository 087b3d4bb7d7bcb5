//! What a file that is read twice gives.

use super::*;

fn open(path: &Path) -> Rewrite {
    let mut options = InputOptions::walking(vec![path.to_owned()]);
    options.format = Some(Format::Jsonl);
    options.skip_bad_lines = false;
    let (recipe, stdin) = (Recipe::default(), Box::new(std::io::empty()));
    Rewrite::open(&options, Needs::CLIENT, recipe, Preference::First, stdin).unwrap()
}

/// What is handed on once `between` has changed the file.
fn rewritten(content: &str, between: impl FnOnce(&Path)) -> Result<Vec<u8>, InputError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.jsonl");
    fs::write(&path, content).unwrap();
    let mut rewrite = open(&path);
    let mut read = rewrite.read(&mut |_| {})?;
    read.marks.leave_out(|document| document == 0);
    between(&path);
    let mut kept = Vec::new();
    rewrite.write(&read.marks, |_, bytes| {
        kept.extend(bytes);
        Ok::<_, InputError>(())
    })?;
    Ok(kept)
}

/// I6.
#[test]
fn a_file_that_changes_between_the_readings_is_an_error() {
    let lines = "{\"id\":\"1\",\"text\":\"a b\"}\n\n{\"id\":\"2\",\"text\":\"c d\"}\n";
    let kept = rewritten(lines, |_| {}).unwrap();
    assert_eq!(kept, b"\n{\"id\":\"2\",\"text\":\"c d\"}\n");
    let longer = |path: &Path| fs::write(path, lines.repeat(2)).unwrap();
    let other = |path: &Path| fs::write(path, lines.replace('c', "e")).unwrap();
    let replaced = |path: &Path| {
        fs::write(path.with_extension("new"), lines).unwrap();
        fs::rename(path.with_extension("new"), path).unwrap();
    };
    let changes: [&dyn Fn(&Path); 3] = [&longer, &other, &replaced];
    for change in changes {
        let changed = rewritten(lines, change);
        assert!(
            matches!(changed, Err(InputError::Changed { .. })),
            "{changed:?}"
        );
    }
}
