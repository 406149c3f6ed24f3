"""Tests over real sockets on the loopback interface."""
