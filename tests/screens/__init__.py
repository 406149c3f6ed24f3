"""Tests of the screens with Pilot, and their snapshots."""
