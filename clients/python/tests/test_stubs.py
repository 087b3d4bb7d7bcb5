"""The messages of the package are those of the interface."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from simshard.v1 import corpus_service_pb2, matches_pb2

PROTO = Path(__file__).parents[3] / "proto"


def test_the_generated_messages_are_up_to_date(tmp_path: Path) -> None:
    made = tmp_path / "descriptors"
    modules = {module.DESCRIPTOR.name: module.DESCRIPTOR for module in (matches_pb2, corpus_service_pb2)}
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO}", f"--descriptor_set_out={made}"]
    subprocess.run([*protoc, *modules], check=True)
    files = FileDescriptorSet.FromString(made.read_bytes()).file
    assert {file.name for file in files} == set(modules)
    for file in files:
        generated = FileDescriptorProto.FromString(modules[file.name].serialized_pb)
        assert [without_json(one) for one in file.message_type] == [without_json(one) for one in generated.message_type]
        assert (file.enum_type, file.service) == (generated.enum_type, generated.service)


def without_json(message: object) -> str:
    """Return a message without the names in JSON, which only some outputs of protoc have."""
    return "\n".join(line for line in str(message).splitlines() if "json_name" not in line)
