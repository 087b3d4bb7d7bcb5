"""The interfaces of earlier packages, over the engine: change the import, and the values stay."""
