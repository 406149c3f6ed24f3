"""What opens over the screens of sessions: sources, help, command line, figures, and the way out."""
