//! Compiles the interfaces in `proto/` without protoc.

use std::path::{Path, PathBuf};
use std::{env, fs};

use protox::prost::Message;
use protox::prost_reflect::prost_types::FileDescriptorSet;

/// Each service, and the file that describes it for reflection.
const SERVICES: [(&str, &str); 2] = [
    ("simshard/v1/corpus_service.proto", "corpus_service.bin"),
    ("simshard/shard/v1/shard_service.proto", "shard_service.bin"),
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
    for (service, description) in SERVICES {
        let descriptors = compile(&root, &[service])?;
        fs::write(out.join(description), descriptors.encode_to_vec())?;
    }
    let all = compile(&root, &SERVICES.map(|(service, _)| service))?;
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
