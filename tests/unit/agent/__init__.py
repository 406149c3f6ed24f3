"""Tests of agents as their authors have them."""
