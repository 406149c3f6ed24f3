"""The inbox: every open request, decided without opening its session."""
