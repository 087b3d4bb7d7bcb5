//! Compiles the interfaces in `proto/` without protoc.

use std::path::{Path, PathBuf};
use std::{env, fs};

use protox::prost::Message;
use protox::prost_reflect::prost_types::FileDescriptorSet;

const CORPUS: &str = "simshard/v1/corpus_service.proto";
const ADMIN: &str = "simshard/admin/v1/admin.proto";
const SHARD: &str = "simshard/shard/v1/shard_service.proto";

/// What a server serves, and the file that describes it for reflection.
const DESCRIPTIONS: [(&[&str], &str); 3] = [
    (&[CORPUS], "corpus_service.bin"),
    (&[CORPUS, ADMIN], "router.bin"),
    (&[SHARD], "shard_service.bin"),
];

/// A field that is megabytes of another message: passed on without a copy.
const ENCODED: &str = ".simshard.shard.v1.WorkOutcome.matches";

/// Items of work move between tasks: a pointer moves faster than a message.
const BOXED: [&str; 2] = [
    ".simshard.shard.v1.WorkItem.work.change",
    ".simshard.shard.v1.WorkItem.work.find_all",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for (services, description) in DESCRIPTIONS {
        let descriptors = compile(&root, services)?;
        fs::write(out.join(description), descriptors.encode_to_vec())?;
    }
    let all = compile(&root, &[CORPUS, ADMIN, SHARD])?;
    let builder = tonic_prost_build::configure().bytes(ENCODED);
    let builder = BOXED
        .iter()
        .fold(builder, |builder, field| builder.boxed(field));
    builder.compile_fds(all)?;
    Ok(())
}

/// With comments, which become documentation, and imports, which reflection needs.
fn compile(root: &Path, files: &[&str]) -> Result<FileDescriptorSet, protox::Error> {
    let mut compiler = protox::Compiler::new([root])?;
    compiler.include_source_info(true).include_imports(true);
    for file in files {
        compiler.open_file(file)?;
    }
    Ok(compiler.file_descriptor_set())
}
