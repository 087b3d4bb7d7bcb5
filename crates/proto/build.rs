//! Compiles the interfaces in `proto/` without protoc.

use std::path::PathBuf;
use std::{env, fs};

use protox::prost::Message;

const SERVICES: [&str; 2] = [
    "simshard/v1/corpus_service.proto",
    "simshard/shard/v1/shard_service.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());

    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_source_info(true).include_imports(true);
    for service in SERVICES {
        compiler.open_file(service)?;
    }
    let descriptors = compiler.file_descriptor_set();

    // Served by reflection, which needs the imports.
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
