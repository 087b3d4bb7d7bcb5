"""The messages of the interface, as protoc generates them from ``proto/simshard/v1``."""
