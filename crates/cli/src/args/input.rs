//! The arguments that say where documents come from and how they are written.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use simshard_input::{Format, Html, InputOptions, Notation, Separator};

/// Where ids come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IdFrom {
    /// The number of the line of jsonl, or of the row of csv, parquet and arrow, from 1. Where there are several paths,
    /// the path and a colon precede it
    Row,
}

/// Where documents come from and how they are written.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// Files or folders to read; `-` or nothing reads standard input
    ///
    /// A path with `*`, `?` or `[` in it that does not exist is a pattern: the files that match
    /// are read in the order of their names. Files may be compressed with gzip, zstd, xz, bzip2 or lz4, whatever
    /// they are called.
    ///
    /// Commands that talk to a router check all input before they use any of it: a bad line stops
    /// them before anything is sent. For this, standard input and pipes are first copied to a
    /// temporary file; with --skip-bad-lines they are used as they arrive. The other commands
    /// read once. Parquet is copied to a temporary file in any case, unless it is an uncompressed file.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = None)]
    pub paths: Vec<PathBuf>,

    /// How documents are written [default: by the paths, else as the command says]
    ///
    /// Without this option a folder among the paths means `files`. A folder that holds tables alone means `parquet` or
    /// `arrow`, and one with other files that have an extension below is refused. With it, a folder is read as its
    /// files with the extensions of the format. Paths that all end in .jsonl, .jl, .jsonlines or .ndjson mean `jsonl`.
    /// Likewise .csv means `csv`, .tsv `tsv`, .parquet `parquet`, and .arrow, .arrows and .feather `arrow`. The
    /// extensions .warc, .wet, .wat and .arc mean `warc`; .html, .htm and .xhtml mean `files`. Each may have a further
    /// .gz, .zst, .zstd, .xz, .bz2 or .lz4. The option cannot be left out where only some paths end so. Standard input
    /// is `lines`. A command that compares fingerprints takes it, and files of other names, for `hashes`; other
    /// commands refuse files of other names.
    ///
    /// Content that looks like another format, such as JSON on standard input, is refused unless this
    /// option says what it is.
    ///
    /// Input is UTF-8; a line, a text or a file is at most 8 MiB, an id at most 1024 bytes.
    #[arg(short, long, value_enum)]
    pub format: Option<Format>,

    /// jsonl, csv, parquet, arrow: the field or column that holds a document's id, a string or a number
    /// [default: id]
    #[arg(short = 'x', long, visible_alias = "id_column", value_name = "FIELD")]
    pub id_field: Option<String>,

    /// jsonl, csv, parquet, arrow: where ids come from, if no field or column holds them
    #[arg(
        long = "id",
        value_enum,
        value_name = "WHENCE",
        conflicts_with = "id_field"
    )]
    pub id_from: Option<IdFrom>,

    /// jsonl, csv, parquet, arrow: the field or column that holds a document's text; repeat for more, whose
    /// texts are joined [default: text]
    ///
    /// Texts of several fields are joined by a line break, without those that are empty or null. Each of
    /// them must be there. A path such as `doc.text` names a field inside objects, or a column inside structs.
    #[arg(short, long, visible_alias = "text_column", value_name = "FIELD")]
    pub text_field: Vec<String>,

    /// jsonl, csv, parquet, arrow: the field or column that holds a document's fingerprint, instead of a text
    ///
    /// The fingerprint is a number or a string of decimal digits, 0 to 18446744073709551615.
    #[arg(long, value_name = "FIELD", conflicts_with = "text_field")]
    pub fingerprint_field: Option<String>,

    /// Fingerprints are numbers in two's complement, -9223372036854775808 to 9223372036854775807, as in
    /// Spark, BigQuery and Java, in the input and in what is written
    #[arg(long)]
    pub signed: bool,

    /// csv: what separates values, one character or the word `tab` [default: tab in files .tsv, else a comma]
    ///
    /// In a shell, put quotes around it: ';' or '|'.
    ///
    /// `dedup` and `find --only-new` write rows as they are, so with the same separator.
    #[arg(long, value_name = "CHAR")]
    pub separator: Option<Separator>,

    /// jsonl: the field that holds a document's features, instead of a text [default: features,
    /// with the recipe `features`]
    ///
    /// Features are an object of weights by hash, {"17":2,"18":1}, or an array of hashes and
    /// [hash, weight] pairs, [[17,2],18]; hashes and weights are integers from 0 to
    /// 18446744073709551615, hashes may be strings.
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["text_field", "fingerprint_field"])]
    pub features_field: Option<String>,

    /// files, jsonl, csv, parquet, arrow, warc: what is the text of a page of HTML [default: main, where a document is
    /// known to be a page]
    ///
    /// Two kinds of documents are known to be pages. One is responses and other records of `text/html` or
    /// `application/xhtml+xml` in a WARC file. The other is files whose names end in .html, .htm or .xhtml, and files
    /// that begin with `<!doctype html` or `<html`, whatever their names. The texts of jsonl, csv, parquet and arrow
    /// are pages only where this option says so; then all of them are.
    ///
    /// The character set is that of a byte order mark, of the Content-Type in the HTTP header, or of a `meta` element
    /// in the first 1024 bytes. Else it is UTF-8 or, where a page is none, windows-1252.
    #[arg(
        long,
        value_enum,
        value_name = "PART",
        conflicts_with_all = ["fingerprint_field", "features_field"]
    )]
    pub html: Option<Html>,

    /// Leave out files of other formats, and count them, instead of stopping
    ///
    /// With --format, these are the files whose names or first bytes tell of another one. Without it, in a
    /// folder, they are those whose names tell of many documents, which is then read as one document a file.
    #[arg(long)]
    pub skip_formats: bool,

    /// Leave out lines, rows and records that cannot be read, and count them, instead of stopping
    ///
    /// Nothing is checked ahead, so standard input and pipes are used as they arrive.
    #[arg(long)]
    pub skip_bad_lines: bool,
}

impl InputArgs {
    /// How fingerprints are written as numbers.
    #[must_use]
    pub const fn notation(&self) -> Notation {
        if self.signed {
            Notation::Signed
        } else {
            Notation::Unsigned
        }
    }

    /// What these arguments ask for.
    #[must_use]
    pub fn options(&self) -> InputOptions {
        InputOptions {
            paths: self.paths.clone(),
            format: self.format,
            id_field: self.id_field.clone(),
            row_ids: self.id_from == Some(IdFrom::Row),
            text_fields: self.text_field.clone(),
            fingerprint_field: self.fingerprint_field.clone(),
            notation: self.notation(),
            separator: self.separator,
            features_field: self.features_field.clone(),
            html: self.html,
            skip_formats: self.skip_formats,
            skip_bad_lines: self.skip_bad_lines,
            min_words: 0,
        }
    }
}

impl InputArgs {
    /// The words that say how to read documents in the same way when they were written again in this format, to an
    /// output.
    pub(crate) fn words_for(&self, output: &Path, format: Format) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: &str| {
            words.extend([option.to_owned(), value.to_owned()]);
        };
        add("--format", &format.to_string());
        let fields = [
            ("--id-field", &self.id_field),
            ("--fingerprint-field", &self.fingerprint_field),
            ("--features-field", &self.features_field),
        ];
        for (option, field) in fields {
            if let Some(field) = field {
                add(option, field);
            }
        }
        for field in &self.text_field {
            add("--text-field", field);
        }
        if let Some(separator) = self.separator_in(output, format) {
            add("--separator", &separator.to_string());
        }
        if let Some(id_from) = self.id_from {
            add("--id", &name_of(&id_from));
        }
        if let Some(html) = self.html {
            add("--html", &name_of(&html));
        }
        if self.signed {
            words.push("--signed".to_owned());
        }
        words
    }

    /// What to say of the separator of an output: the name of the input may have said it.
    fn separator_in(&self, output: &Path, format: Format) -> Option<Separator> {
        let of_input = || {
            let input = self.paths.first().map_or(Path::new("-"), PathBuf::as_path);
            let separator = Separator::of_name(input);
            let is_other = separator != Separator::of_name(output);
            (format == Format::Csv && is_other).then_some(separator)
        };
        self.separator.or_else(of_input)
    }
}

/// The name of a value on the command line.
fn name_of(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests;
