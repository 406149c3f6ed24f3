"""The watchfloor.v1 protocol: models, frames, codec and schema."""
